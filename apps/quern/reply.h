// One reply read to its end on the calling thread.
#pragma once

#include <functional>
#include <string_view>
#include <variant>

#include "quern/base/cancellation.h"
#include "quern/engine/engine.h"

namespace quern::app {

struct ReplyOutcome {
  engine::FinishReason reason = engine::FinishReason::kStop;
  engine::GenerateStats stats;
};

/// Submits a request for one choice and hands each piece of its text to `on_text`, on this thread, until it has ended.
/// Errors: the engine's refusal, or the reply's own failure (kCancelled when the token ended it).
[[nodiscard]] Result<ReplyOutcome> read_reply(engine::Engine& engine,
                                              std::variant<engine::ChatRequest, engine::CompletionRequest> request,
                                              const CancellationToken& cancellation,
                                              const std::function<void(std::string_view text)>& on_text);

/// "24 tokens, 85.3 tokens/s, first after 40 ms"
[[nodiscard]] std::string describe(const engine::GenerateStats& stats);

}  // namespace quern::app
