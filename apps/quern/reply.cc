// From the engine's sink to the reading thread.
#include "reply.h"

#include <memory>

#include "quern/base/bounded_queue.h"

namespace quern::app {
namespace {

using EventQueue = BoundedQueue<engine::ReplyEvent>;

/// A reply never has more events than this: a delta a token, a last flush, and the four others.
std::size_t most_events(const engine::ModelInfo& info) {
  return static_cast<std::size_t>(info.context) + 8;
}

}  // namespace

Result<ReplyOutcome> read_reply(engine::Engine& engine,
                                std::variant<engine::ChatRequest, engine::CompletionRequest> request,
                                const CancellationToken& cancellation,
                                const std::function<void(std::string_view)>& on_text) {
  const auto events = std::make_shared<EventQueue>(most_events(engine.info()));
  const auto sink = [events](engine::ReplyEvent&& event) { QUERN_CHECK(events->try_push(std::move(event))); };
  if (auto* const chat = std::get_if<engine::ChatRequest>(&request)) {
    QUERN_TRY(engine.chat(std::move(*chat), sink, cancellation));
  } else {
    QUERN_TRY(engine.complete(std::move(std::get<engine::CompletionRequest>(request)), sink, cancellation));
  }
  ReplyOutcome outcome;
  while (auto event = events->pop()) {
    if (const auto* const delta = std::get_if<engine::TextDelta>(&*event)) on_text(delta->text);
    if (const auto* const finished = std::get_if<engine::ChoiceFinished>(&*event)) outcome.reason = finished->reason;
    if (auto* const failed = std::get_if<engine::ReplyFailed>(&*event)) return fail(std::move(failed->error));
    if (const auto* const done = std::get_if<engine::ReplyDone>(&*event)) {
      outcome.stats = done->stats;
      break;
    }
  }
  return outcome;
}

std::string describe(const engine::GenerateStats& stats) {
  std::string text = fmt::format("{} tokens", stats.generated_tokens);
  // The first token belongs to the prefill.
  if (stats.decode_ms > 0.0 && stats.generated_tokens > 1) {
    text +=
        fmt::format(", {:.1f} tokens/s", static_cast<double>(stats.generated_tokens - 1) * 1000.0 / stats.decode_ms);
  }
  return text + fmt::format(", first after {:.0f} ms", stats.queue_ms + stats.prefill_ms);
}

}  // namespace quern::app
