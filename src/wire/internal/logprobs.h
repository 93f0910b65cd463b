// Log probabilities as the two kinds of completion write them.
#pragma once

#include <cstdint>
#include <vector>

#include "quern/wire/internal/json.h"
#include "quern/wire/replies.h"

namespace quern::wire {

/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}
[[nodiscard]] Json chat_logprobs(const std::vector<TokenLogprobs>& tokens);

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. `offset`, the characters of the choice before the first
/// token, is moved past the tokens.
[[nodiscard]] Json completion_logprobs(const std::vector<TokenLogprobs>& tokens, std::int64_t& offset);

}  // namespace quern::wire
