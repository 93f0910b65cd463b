// Events to output. A stream opens once every request submitted so far was found valid, so that what is wrong with one
// is said with its own status; a body "opens" with its last byte.
#include "quern/server/generation.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace quern::server {
namespace {

// Requests of one HTTP request that are in the engine at once: the queue is there for others too.
constexpr std::size_t kWindow = 16;

std::vector<wire::TokenLogprobs> wire_logprobs(std::vector<engine::TextDelta::Token>&& tokens) {
  const auto one = [](engine::TokenLogprob&& token) {
    return wire::TokenLogprob{std::move(token.bytes), token.logprob};
  };
  std::vector<wire::TokenLogprobs> result;
  result.reserve(tokens.size());
  for (auto& token : tokens) {
    if (!token.has_logprob) token.token.logprob = std::numeric_limits<float>::quiet_NaN();
    wire::TokenLogprobs& added = result.emplace_back(one(std::move(token.token)));
    added.top.reserve(token.top.size());
    for (auto& other : token.top) added.top.push_back(one(std::move(other)));
  }
  return result;
}

}  // namespace

Generation::Generation(GenerationPlan plan, std::size_t unsent_bytes, std::function<void()> wake)
    : plan_(std::move(plan)), channel_(std::make_shared<ReplyChannel>(unsent_bytes, std::move(wake))) {}

Generation::~Generation() {
  channel_->close();
  cancellation_.cancel();
}

void Generation::submit() {
  while (!failure_ && submitted_ < plan_.requests && submitted_ - done_ < kWindow) {
    const std::size_t index = submitted_;
    auto accepted = plan_.submit(
        index, [channel = channel_, index](engine::ReplyEvent&& event) { channel->push(index, std::move(event)); },
        cancellation_.token());
    if (accepted) {
      ++submitted_;
      continue;
    }
    const bool later = accepted.error().code == ErrorCode::kQueueFull && submitted_ > done_;
    if (!later) failure_ = std::move(accepted).error();
    return;
  }
}

Generation::Output Generation::poll() {
  submit();
  for (auto& item : channel_->take()) {
    if (failure_) break;
    apply(std::move(item));
  }
  submit();
  if (failure_) return fail(*failure_);
  const bool ended = done_ == plan_.requests;
  if (ended) pending_ += plan_.writer->done(stats_);
  if (!open_ && (ended || (plan_.stream && started_ == submitted_))) {
    open_ = true;
    pending_.insert(0, plan_.writer->open());
  }
  if (!open_) return {};
  return {.open = true, .bytes = std::exchange(pending_, {}), .ended = ended};
}

Generation::Output Generation::fail(Error error) {
  channel_->close();
  cancellation_.cancel(error);
  if (!open_) return {.ended = true, .refused = std::move(error)};
  pending_ += plan_.writer->fail(error);
  return {.open = true, .bytes = std::exchange(pending_, {}), .ended = true};
}

void Generation::apply(ReplyChannel::Item&& item) {
  const auto choice_of = [&](std::int32_t choice) {
    return static_cast<std::int32_t>(item.request) * plan_.n + choice;
  };
  if (std::holds_alternative<engine::ReplyStarted>(item.event)) {
    ++started_;
  } else if (auto* delta = std::get_if<engine::TextDelta>(&item.event)) {
    if (delta->text.empty() && delta->logprobs.empty()) return;
    pending_ += plan_.writer->text(
        {choice_of(delta->choice), std::move(delta->text), wire_logprobs(std::move(delta->logprobs))});
  } else if (const auto* finished = std::get_if<engine::ChoiceFinished>(&item.event)) {
    const bool stopped = finished->reason == engine::FinishReason::kStop;
    pending_ += plan_.writer->finish(choice_of(finished->choice),
                                     stopped ? wire::FinishReason::kStop : wire::FinishReason::kLength);
  } else if (const auto* done = std::get_if<engine::ReplyDone>(&item.event)) {
    finish(done->stats);
  } else {
    failure_ = std::move(std::get<engine::ReplyFailed>(item.event).error);
  }
}

void Generation::finish(const engine::GenerateStats& stats) {
  ++done_;
  stats_.prompt_tokens += stats.prompt_tokens;
  stats_.cached_tokens += stats.cached_tokens;
  stats_.completion_tokens += stats.generated_tokens;
  stats_.queue_ms = std::max(stats_.queue_ms, stats.queue_ms);  // of several, what the slowest took
  stats_.prefill_ms = std::max(stats_.prefill_ms, stats.prefill_ms);
  stats_.decode_ms = std::max(stats_.decode_ms, stats.decode_ms);
}

}  // namespace quern::server
