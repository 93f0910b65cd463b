// An engine over a scripted model, and replies collected to their last event.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quern/engine/parts.h"
#include "support/piece_tokenizer.h"
#include "support/scripted_model.h"

namespace quern::tests {

/// A clock that stands until it is moved. Thread-safe.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return TimePoint(std::chrono::milliseconds(ms_.load())); }
  [[nodiscard]] WallTime wall_now() const override { return WallTime(std::chrono::milliseconds(ms_.load())); }
  void advance_ms(std::int64_t ms) { ms_ += ms; }

 private:
  std::atomic<std::int64_t> ms_{0};
};

/// Events of one reply, checked for their order as they come.
class Collector {
 public:
  /// A sink that writes here; `on_event` is called first.
  [[nodiscard]] engine::ReplySink sink(std::function<void(const engine::ReplyEvent&)> on_event = {}) {
    return [this, on_event = std::move(on_event)](engine::ReplyEvent&& event) {
      if (on_event) on_event(event);
      take(std::move(event));
    };
  }
  /// Waits for the last event.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
  }
  [[nodiscard]] bool ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }
  /// Waits until so many deltas of choice 0 came.
  void wait_for_deltas(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return deltas >= count || ended_; });
  }

  // After wait().
  std::optional<std::int64_t> started;
  std::map<std::int32_t, std::string> text;
  std::map<std::int32_t, std::vector<engine::TextDelta::Token>> logprobs;
  std::map<std::int32_t, engine::FinishReason> finished;
  std::optional<engine::GenerateStats> stats;
  std::optional<Error> error;
  int deltas = 0;

 private:
  void take(engine::ReplyEvent&& event) {
    const std::scoped_lock lock(mutex_);
    EXPECT_FALSE(ended_) << "an event after the last";
    if (!std::holds_alternative<engine::ReplyStarted>(event) && !std::holds_alternative<engine::ReplyFailed>(event)) {
      EXPECT_TRUE(started) << "an event before ReplyStarted";
    }
    if (auto* start = std::get_if<engine::ReplyStarted>(&event)) {
      EXPECT_FALSE(started);
      started = start->prompt_tokens;
    } else if (auto* delta = std::get_if<engine::TextDelta>(&event)) {
      EXPECT_FALSE(finished.contains(delta->choice)) << "text after the choice's end";
      EXPECT_FALSE(delta->text.empty() && delta->logprobs.empty()) << "a delta of nothing";
      text[delta->choice] += delta->text;
      for (auto& token : delta->logprobs) logprobs[delta->choice].push_back(std::move(token));
      deltas += delta->choice == 0 ? 1 : 0;
    } else if (auto* choice = std::get_if<engine::ChoiceFinished>(&event)) {
      EXPECT_TRUE(finished.emplace(choice->choice, choice->reason).second);
    } else if (auto* done = std::get_if<engine::ReplyDone>(&event)) {
      stats = done->stats;
      ended_ = true;
    } else if (auto* failed = std::get_if<engine::ReplyFailed>(&event)) {
      error = failed->error;
      ended_ = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

/// What happens before each pass of the model: may be changed while the engine runs.
class PassHook {
 public:
  void set(std::function<void(int pass)> hook) {
    const std::scoped_lock lock(mutex_);
    hook_ = std::move(hook);
  }
  void operator()() {
    std::function<void(int)> hook;
    {
      const std::scoped_lock lock(mutex_);
      hook = hook_;
    }
    const int pass = passes++;
    if (hook) hook(pass);
  }
  std::atomic<int> passes{0};

 private:
  std::mutex mutex_;
  std::function<void(int)> hook_;
};

/// The model answers a prompt that ends with "|" with the pieces of `script`, then end of sequence. Pieces are the 256
/// bytes and `script`'s own.
struct ScriptedEngine {
  struct Options {
    std::int64_t context = 200;
    std::size_t queue_limit = 64;
    bool add_bos = false;
    std::optional<ScriptedModel::Score> score = {};  // instead of the script
  };

  explicit ScriptedEngine(const std::vector<std::string>& script) : ScriptedEngine(script, Options{}) {}
  ScriptedEngine(const std::vector<std::string>& script, const Options& options) {
    auto tokenizer = std::make_unique<PieceTokenizer>(PieceTokenizer::bytes_and(script), options.add_bos);
    const std::int32_t eos = tokenizer->eos_set().front();
    const auto length = static_cast<std::int32_t>(script.size());
    auto scripted = ScriptedModel::favour([eos, length](std::span<const std::int32_t> history) {
      std::int32_t at = 0;
      for (std::size_t i = history.size(); i-- > 0 && history[i] != '|';) ++at;
      return at < length ? 256 + at : eos;
    });
    auto model = std::make_unique<ScriptedModel>(tokenizer->vocab_size(), 1000, options.score.value_or(scripted));
    model->before_pass = [hook = hook](const auto&) { (*hook)(); };
    engine::EngineParts parts;
    parts.info.id = "scripted";
    parts.info.context = options.context;
    parts.runner = scripted_runner(std::move(model), {.pages = 100, .chunk_tokens = 16});
    parts.tokenizer = std::move(tokenizer);
    parts.clock = clock;
    parts.queue_limit = options.queue_limit;
    engine = engine::make_engine(std::move(parts));
  }

  /// A greedy completion.
  [[nodiscard]] static engine::CompletionRequest request(std::string prompt = "prompt|") {
    engine::CompletionRequest request{std::move(prompt), {}};
    request.options.sampling.temperature = 0.0F;
    return request;
  }

  /// Submits and waits for the last event.
  void run(engine::CompletionRequest asked, Collector& collector, CancellationToken cancellation = {}) {
    const auto accepted = engine->complete(std::move(asked), collector.sink(), std::move(cancellation));
    ASSERT_TRUE(accepted) << accepted.error().message;
    collector.wait();
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<PassHook> hook = std::make_shared<PassHook>();
  std::unique_ptr<engine::Engine> engine;
};

}  // namespace quern::tests
