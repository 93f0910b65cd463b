// Reply: one accepted request, shared by the threads that it passes through.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/base/clock.h"
#include "quern/base/error.h"
#include "quern/engine/choice_text.h"
#include "quern/engine/engine.h"
#include "quern/text/chat_template.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

using Prompt = std::variant<text::ChatInput, std::string, std::vector<text::TokenId>>;

/// Handed from thread to thread by the queues: preparation writes what the engine and delivery then read. What runs at
/// the same time is atomic.
class Reply {
 public:
  /// `own` and `closing`: the request's cancellation and the engine's.
  Reply(Prompt asked, GenerateOptions asked_options, ReplySink to, CancellationToken own, CancellationToken closing,
        Clock::TimePoint now)
      : prompt(std::move(asked)),
        options(std::move(asked_options)),
        submitted(now),
        sink(std::move(to)),
        cancellation_(std::move(own)),
        closing_(std::move(closing)) {}

  /// Why this request is to end, once it is: its own cancellation, the engine's close, or delivery giving it up.
  [[nodiscard]] std::optional<Error> cancelled() const {
    if (cancellation_.cancelled()) return cancellation_.reason();
    if (closing_.cancelled()) return closing_.reason();
    if (given_up_.load(std::memory_order_acquire)) {
      return Error{ErrorCode::kInternal, "the reply could not be delivered"};
    }
    return std::nullopt;
  }
  /// Delivery can't go on with this reply: ends it as a cancellation does.
  void give_up() { given_up_.store(true, std::memory_order_release); }

  /// Delivery has found the choice's end: the engine draws no more of it.
  void stop_choice(std::int32_t choice) { stops_[index(choice)].store(true, std::memory_order_release); }
  [[nodiscard]] bool choice_stopped(std::int32_t choice) const {
    return stops_[index(choice)].load(std::memory_order_acquire);
  }
  /// Preparation, once n is known to be valid.
  void make_stops() { stops_ = std::make_unique<std::atomic<bool>[]>(index(options.n)); }

  // Preparation.
  Prompt prompt;
  // Read by all; preparation clamps max_tokens.
  GenerateOptions options;
  std::vector<text::TokenId> prompt_tokens;
  const Clock::TimePoint submitted;
  [[nodiscard]] bool is_chat() const { return std::holds_alternative<text::ChatInput>(prompt); }

  // Delivery.
  ReplySink sink;  // null once it had its last event, or threw
  bool ended = false;
  struct ChoiceState {
    ChoiceText text;
    bool finished = false;
  };
  std::vector<ChoiceState> choices;
  std::int64_t generated_tokens = 0;  // over all choices, those that were counted
  std::optional<Clock::TimePoint> first_token;
  Clock::TimePoint last_token;

 private:
  static std::size_t index(std::int32_t choice) { return static_cast<std::size_t>(choice); }

  const CancellationToken cancellation_;
  const CancellationToken closing_;
  std::atomic<bool> given_up_{false};
  std::unique_ptr<std::atomic<bool>[]> stops_;
};

}  // namespace quern::engine
