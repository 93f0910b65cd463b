// Preparation: a request's fields checked, its prompt made into tokens, its length settled.
#pragma once

#include "quern/base/result.h"
#include "quern/engine/engine.h"
#include "quern/engine/reply.h"
#include "quern/text/chat_template.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

/// `vocab`: tokens that model and tokenizer both have. Fills `reply.prompt_tokens` and sets `reply.options.max_tokens`
/// to at most the room that the context leaves. Any thread, as long as it is the only one that uses the reply.
/// kInvalidRequest names the field; kContextLengthExceeded both numbers; kUnsupportedExecution for a chat without a
/// template (`chat_template` null).
[[nodiscard]] Result<void> prepare(Reply& reply, const text::Tokenizer& tokenizer,
                                   const text::ChatTemplate* chat_template, std::int64_t context, std::int32_t vocab);

}  // namespace quern::engine
