// Delivery: the thread that turns tokens into text, finds stops and calls the sinks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "quern/base/bounded_queue.h"
#include "quern/base/clock.h"
#include "quern/engine/reply.h"
#include "quern/os/thread.h"
#include "quern/sampling/logprobs.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

/// What happened to a reply, in the order in which it must be seen.
struct Admitted {};  // the prompt is valid
struct PromptEvaluated {
  std::vector<sampling::Logprobs> logprobs;  // where asked for, of the prompt's tokens from the second on
};
struct TokenDrawn {
  std::int32_t choice = 0;
  text::TokenId token = 0;
  std::optional<sampling::Logprobs> logprobs;
  Clock::TimePoint at;
};
struct ChoiceEnded {
  std::int32_t choice = 0;
  FinishReason reason = FinishReason::kStop;
};
struct GenerationEnded {
  std::int64_t cached_tokens = 0;
  Clock::TimePoint started;  // left the queue
  Clock::TimePoint prompt_done;
};
struct Failed {
  Error error;
};
using Happening = std::variant<Admitted, PromptEvaluated, TokenDrawn, ChoiceEnded, GenerationEnded, Failed>;

/// One thread for all replies: events of one are in order and never at the same time. A sink that throws is called no
/// more and its request is given up; the others don't notice.
class Delivery {
 public:
  explicit Delivery(const text::Tokenizer& tokenizer);
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  /// close().
  ~Delivery();

  /// Thread-safe. Waits while the queue is full: sinks don't block, so that it isn't for long.
  void post(std::shared_ptr<Reply> reply, Happening happening);
  /// Delivers what was posted and joins. Nothing may be posted any more.
  void close();

  [[nodiscard]] std::int64_t finished_requests() const { return finished_requests_.load(); }
  [[nodiscard]] std::int64_t generated_tokens() const { return generated_tokens_.load(); }

 private:
  struct Item {
    std::shared_ptr<Reply> reply;
    Happening happening;
  };

  void run();
  void deliver(Reply& reply, Happening& happening);
  void handle(Reply& reply, Admitted& admitted);
  void handle(Reply& reply, PromptEvaluated& evaluated);
  void handle(Reply& reply, TokenDrawn& drawn);
  void handle(Reply& reply, ChoiceEnded& choice);
  void handle(Reply& reply, GenerationEnded& generation);
  void handle(Reply& reply, Failed& failed);
  void show(Reply& reply, std::int32_t choice, ChoiceText::Piece piece);
  void finish_choice(Reply& reply, std::int32_t choice, FinishReason reason);
  void emit(Reply& reply, ReplyEvent event);
  /// The last event.
  void end(Reply& reply, ReplyEvent event);

  const text::Tokenizer& tokenizer_;
  BoundedQueue<Item> queue_;
  std::atomic<std::int64_t> finished_requests_{0};
  std::atomic<std::int64_t> generated_tokens_{0};
  os::Thread thread_;
};

}  // namespace quern::engine
