// FakeEngine: an engine whose replies a test writes by hand.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "quern/base/check.h"
#include "quern/engine/engine.h"

namespace quern::support {

/// Thread-safe. A test waits for the n-th request and sends its events from the test's own thread.
class FakeEngine final : public engine::Engine {
 public:
  struct Request {
    std::variant<engine::ChatRequest, engine::CompletionRequest> what;
    engine::ReplySink sink;
    CancellationToken cancellation;

    [[nodiscard]] const engine::GenerateOptions& options() const {
      return std::visit([](const auto& request) -> const engine::GenerateOptions& { return request.options; }, what);
    }
    void start() const { sink(engine::ReplyStarted{}); }
    void text(std::string piece, std::int32_t choice = 0) const {
      sink(engine::TextDelta{.choice = choice, .text = std::move(piece), .logprobs = {}});
    }
    void finish(engine::FinishReason reason = engine::FinishReason::kStop, std::int32_t choice = 0) const {
      sink(engine::ChoiceFinished{choice, reason});
    }
    void done(engine::GenerateStats stats = {}) const { sink(engine::ReplyDone{stats}); }
    void fail(Error error) const { sink(engine::ReplyFailed{std::move(error)}); }
    /// Start to end.
    void answer(const std::string& piece) const {
      start();
      text(piece);
      finish();
      done({.prompt_tokens = 3, .generated_tokens = 2});
    }
    /// Returns once the request was cancelled, with the reason.
    [[nodiscard]] Error wait_cancelled() const {
      std::promise<Error> promise;
      const auto subscription = cancellation.subscribe([&](const Error& reason) { promise.set_value(reason); });
      return promise.get_future().get();
    }
  };

  FakeEngine() {
    info_.id = "fake";
    info_.context = 64;
  }

  /// The index-th request ever submitted; waits for it.
  [[nodiscard]] Request& request(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return requests_.size() > index; });
    return requests_[index];
  }
  [[nodiscard]] std::size_t submitted() const {
    const std::scoped_lock lock(mutex_);
    return requests_.size();
  }
  /// More than this many are refused with kQueueFull.
  void set_limit(std::size_t limit) {
    const std::scoped_lock lock(mutex_);
    limit_ = limit;
  }
  [[nodiscard]] bool admission_stopped() const {
    const std::scoped_lock lock(mutex_);
    return stopped_;
  }

  [[nodiscard]] const engine::ModelInfo& info() const override { return info_; }
  [[nodiscard]] const text::Tokenizer& tokenizer() const override {
    QUERN_CHECK(!"the fake has no tokenizer");
    std::abort();
  }
  [[nodiscard]] engine::EngineStatus status() const override { return {}; }
  [[nodiscard]] Result<void> chat(engine::ChatRequest request, engine::ReplySink sink,
                                  CancellationToken cancellation) override {
    return add({std::move(request), std::move(sink), std::move(cancellation)});
  }
  [[nodiscard]] Result<void> complete(engine::CompletionRequest request, engine::ReplySink sink,
                                      CancellationToken cancellation) override {
    return add({std::move(request), std::move(sink), std::move(cancellation)});
  }
  void stop_admission() override {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  void close(Error) override { stop_admission(); }

 private:
  Result<void> add(Request request) {
    {
      const std::scoped_lock lock(mutex_);
      if (requests_.size() >= limit_) return quern::fail(ErrorCode::kQueueFull, "the queue is full");
      requests_.push_back(std::move(request));
    }
    changed_.notify_all();
    return {};
  }

  engine::ModelInfo info_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;  // references stay valid
  std::size_t limit_ = SIZE_MAX;
  bool stopped_ = false;
};

}  // namespace quern::support
