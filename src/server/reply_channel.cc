// The channel from engine to connection.
#include "quern/server/reply_channel.h"

#include <utility>

namespace quern::server {
namespace {

// While nothing is being written, what waits is the io threads' delay and not the client's: much more may.
constexpr std::size_t kBurst = 64;

// Near enough to what the event becomes on the wire.
std::size_t size_of(const engine::ReplyEvent& event) {
  constexpr std::size_t kPerEvent = 64;
  const auto* delta = std::get_if<engine::TextDelta>(&event);
  if (delta == nullptr) return kPerEvent;
  std::size_t bytes = kPerEvent + delta->text.size();
  for (const auto& token : delta->logprobs) bytes += kPerEvent * (1 + token.top.size());
  return bytes;
}

}  // namespace

ReplyChannel::ReplyChannel(std::size_t unsent_bytes, std::function<void()> wake)
    : unsent_bytes_(unsent_bytes), wake_(std::move(wake)) {}

void ReplyChannel::push(std::size_t request, engine::ReplyEvent&& event) {
  const std::scoped_lock lock(mutex_);
  if (!wake_ || overflowed_) return;
  const bool was_empty = items_.empty();
  waiting_bytes_ += size_of(event);
  if (waiting_bytes_ / (writing_ ? 1 : kBurst) > unsent_bytes_) {
    overflowed_ = true;
    items_.clear();
  } else {
    items_.push_back({request, std::move(event)});
  }
  if (was_empty || overflowed_) wake_();
}

std::deque<ReplyChannel::Item> ReplyChannel::take() {
  const std::scoped_lock lock(mutex_);
  waiting_bytes_ = 0;
  return std::exchange(items_, {});
}

void ReplyChannel::set_writing(bool writing) {
  const std::scoped_lock lock(mutex_);
  writing_ = writing;
}

void ReplyChannel::close() {
  std::function<void()> dropped;  // destroyed after the lock is
  const std::scoped_lock lock(mutex_);
  dropped = std::exchange(wake_, nullptr);
  items_.clear();
}

}  // namespace quern::server
