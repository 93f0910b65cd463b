// From submission to the last event.
#include "quern/engine/completion_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "quern/base/check.h"
#include "quern/base/log.h"
#include "quern/engine/preparation.h"
#include "quern/execution/generation.h"

namespace quern::engine {
namespace {

constexpr int kPreparationThreads = 2;

/// A generation's tokens on their way to delivery.
class DeliverySink final : public execution::TokenSink {
 public:
  DeliverySink(std::shared_ptr<Reply> reply, Delivery& delivery, const Clock& clock)
      : reply_(std::move(reply)), delivery_(delivery), clock_(clock) {}

  void on_prompt(std::vector<sampling::Logprobs> logprobs) override {
    prompt_done_ = clock_.now();
    delivery_.post(reply_, PromptEvaluated{std::move(logprobs)});
  }
  void on_token(std::int32_t choice, std::int32_t token, std::optional<sampling::Logprobs> logprobs) override {
    delivery_.post(reply_, TokenDrawn{choice, token, std::move(logprobs), clock_.now()});
  }
  void on_end(std::int32_t choice, execution::EndReason reason) override {
    const bool length = reason == execution::EndReason::kLength;
    delivery_.post(reply_, ChoiceEnded{choice, length ? FinishReason::kLength : FinishReason::kStop});
  }
  [[nodiscard]] bool stopped(std::int32_t choice) const override { return reply_->choice_stopped(choice); }
  [[nodiscard]] Clock::TimePoint prompt_done() const { return prompt_done_; }

 private:
  std::shared_ptr<Reply> reply_;
  Delivery& delivery_;
  const Clock& clock_;
  Clock::TimePoint prompt_done_;
};

execution::GenerationRequest generation_request(const Reply& reply, const text::Tokenizer& tokenizer,
                                                std::int32_t vocab) {
  const GenerateOptions& options = reply.options;
  const auto eos = tokenizer.eos_set();
  execution::GenerationRequest request;
  request.prompt = reply.prompt_tokens;
  request.sampling = options.sampling;
  request.eos.assign(eos.begin(), eos.end());
  request.max_tokens = options.max_tokens.value();
  request.min_tokens = options.min_tokens;
  request.ignore_eos = options.ignore_eos;
  request.vocab = vocab;
  request.n = options.n;
  request.top_logprobs = options.top_logprobs;
  request.prompt_logprobs = options.echo && options.top_logprobs >= 0;
  return request;
}

}  // namespace

std::unique_ptr<Engine> make_engine(EngineParts parts) {
  return std::make_unique<CompletionEngine>(std::move(parts));
}

CompletionEngine::CompletionEngine(EngineParts parts)
    : parts_(std::move(parts)),
      vocab_(std::min(parts_.runner->config().vocab, parts_.tokenizer->vocab_size())),
      delivery_(*parts_.tokenizer),
      to_prepare_(parts_.queue_limit),
      inbox_(parts_.queue_limit),
      engine_("quern-engine", [this] { run_engine(); }) {
  for (int i = 0; i < kPreparationThreads; ++i) {
    preparation_.emplace_back(fmt::format("quern-prepare-{}", i), [this] { run_preparation(); });
  }
}

CompletionEngine::~CompletionEngine() {
  close({ErrorCode::kServerClosing, "the engine is closed"});
}

EngineStatus CompletionEngine::status() const {
  const std::scoped_lock lock(mutex_);
  return {.active = active_,
          .queued = waiting_,
          .requests_accepted = accepted_,
          .requests_finished = delivery_.finished_requests(),
          .generated_tokens = delivery_.generated_tokens()};
}

Result<void> CompletionEngine::chat(ChatRequest request, ReplySink sink, CancellationToken cancellation) {
  return submit(std::move(request.chat), std::move(request.options), std::move(sink), std::move(cancellation));
}

Result<void> CompletionEngine::complete(CompletionRequest request, ReplySink sink, CancellationToken cancellation) {
  Prompt prompt = std::visit([](auto& one) { return Prompt(std::move(one)); }, request.prompt);
  return submit(std::move(prompt), std::move(request.options), std::move(sink), std::move(cancellation));
}

Result<void> CompletionEngine::submit(Prompt prompt, GenerateOptions options, ReplySink sink,
                                      CancellationToken cancellation) {
  auto reply = std::make_shared<Reply>(std::move(prompt), std::move(options), std::move(sink), std::move(cancellation),
                                       closing_.token(), parts_.clock->now());
  const std::scoped_lock lock(mutex_);
  if (!admits_) return fail(ErrorCode::kServerClosing, "the engine takes no more requests");
  if (waiting_ >= static_cast<std::int64_t>(parts_.queue_limit)) {
    return fail(ErrorCode::kQueueFull, "{} requests wait already", waiting_);
  }
  ++waiting_;
  ++accepted_;
  QUERN_CHECK(to_prepare_.try_push(std::move(reply)));  // waiting_ bounds it, and it closes after admission
  return {};
}

void CompletionEngine::leave_queue() {
  const std::scoped_lock lock(mutex_);
  --waiting_;
}

void CompletionEngine::stop_admission() {
  const std::scoped_lock lock(mutex_);
  admits_ = false;
}

void CompletionEngine::close(Error reason) {
  std::call_once(closed_, [&] {
    stop_admission();
    closing_.cancel(std::move(reason));
    to_prepare_.close();
    for (os::Thread& thread : preparation_) thread.join();
    inbox_.close();
    engine_.join();
    delivery_.close();
  });
}

void CompletionEngine::run_preparation() {
  while (auto reply = to_prepare_.pop()) prepare_reply(*reply);
}

void CompletionEngine::prepare_reply(const ReplyPtr& reply) {
  std::optional<Error> error = reply->cancelled();
  if (!error) {
    try {
      auto prepared = prepare(*reply, *parts_.tokenizer, parts_.chat_template.get(), parts_.info.context, vocab_);
      if (!prepared) error = std::move(prepared).error();
    } catch (const std::exception& exception) {
      log_error("preparing a request failed: {}", exception.what());
      error = Error{ErrorCode::kInternal, "preparing the request failed"};
    }
  }
  if (error) {
    leave_queue();
    delivery_.post(reply, Failed{*std::move(error)});
    return;
  }
  reply->make_stops();
  delivery_.post(reply, Admitted{});
  QUERN_CHECK(inbox_.try_push(ReplyPtr(reply)));  // waiting_ bounds it, and it closes after preparation
}

void CompletionEngine::run_engine() {
  while (true) {
    if (queue_.empty()) {
      auto next = inbox_.pop();
      if (!next) return;
      queue_.push_back(*std::move(next));
    }
    take_arrivals();
    drop_cancelled();
    if (queue_.empty()) continue;
    const ReplyPtr head = std::move(queue_.front());
    queue_.pop_front();
    run_reply(head);
  }
}

void CompletionEngine::take_arrivals() {
  while (auto next = inbox_.try_pop()) queue_.push_back(*std::move(next));
}

void CompletionEngine::drop_cancelled() {
  std::erase_if(queue_, [&](const ReplyPtr& reply) {
    auto reason = reply->cancelled();
    if (!reason) return false;
    leave_queue();
    delivery_.post(reply, Failed{*std::move(reason)});
    return true;
  });
}

void CompletionEngine::run_reply(const ReplyPtr& reply) {
  {
    const std::scoped_lock lock(mutex_);
    --waiting_;
    ++active_;
  }
  Result<GenerationEnded> generated = fail(ErrorCode::kInternal, "the model failed");
  try {
    generated = generate(reply);
  } catch (const std::exception& exception) {
    log_error("a request failed: {}", exception.what());
  }
  {
    const std::scoped_lock lock(mutex_);
    --active_;
  }
  if (generated) {
    delivery_.post(reply, *generated);
  } else {
    delivery_.post(reply, Failed{std::move(generated).error()});
  }
}

Result<GenerationEnded> CompletionEngine::generate(const ReplyPtr& reply) {
  const Clock::TimePoint started = parts_.clock->now();
  DeliverySink sink(reply, delivery_, *parts_.clock);
  execution::Generation generation(*parts_.runner, generation_request(*reply, *parts_.tokenizer, vocab_), sink);
  while (!generation.done()) {
    if (auto reason = reply->cancelled()) return fail(*std::move(reason));
    QUERN_TRY(generation.advance());
    take_arrivals();
    drop_cancelled();
  }
  return GenerationEnded{generation.cached_tokens(), started, sink.prompt_done()};
}

}  // namespace quern::engine
