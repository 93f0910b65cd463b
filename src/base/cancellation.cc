// Cancellation's shared state: an atomic flag for the cheap question, a lock for reason and subscribers.
#include "quern/base/cancellation.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace quern {
namespace internal {

struct CancellationState {
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::condition_variable idle;
  std::optional<Error> reason;
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, std::function<void(const Error&)>> subscribers;  // ordered by arrival
  std::uint64_t running_id = 0;                                            // the callback that runs now, 0 = none
  std::thread::id running_on;
};

}  // namespace internal

using internal::CancellationState;

CancellationSubscription::CancellationSubscription(std::shared_ptr<CancellationState> state, std::uint64_t id)
    : state_(std::move(state)), id_(id) {}

CancellationSubscription::CancellationSubscription(CancellationSubscription&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

CancellationSubscription& CancellationSubscription::operator=(CancellationSubscription&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

CancellationSubscription::~CancellationSubscription() {
  reset();
}

void CancellationSubscription::reset() {
  if (!state_) return;
  const auto state = std::move(state_);
  state_.reset();
  std::function<void(const Error&)> dropped;  // destroyed after the lock is
  std::unique_lock lock(state->mutex);
  if (const auto found = state->subscribers.find(id_); found != state->subscribers.end()) {
    dropped = std::move(found->second);
    state->subscribers.erase(found);
  }
  state->idle.wait(lock, [&] { return state->running_id != id_ || state->running_on == std::this_thread::get_id(); });
}

CancellationToken::CancellationToken(std::shared_ptr<CancellationState> state) : state_(std::move(state)) {}

bool CancellationToken::cancelled() const {
  return state_ && state_->cancelled.load(std::memory_order_acquire);
}

std::optional<Error> CancellationToken::reason() const {
  if (!state_) return std::nullopt;
  const std::scoped_lock lock(state_->mutex);
  return state_->reason;
}

CancellationSubscription CancellationToken::subscribe(std::function<void(const Error&)> callback) const {
  if (!state_) return {};
  std::unique_lock lock(state_->mutex);
  if (state_->reason) {
    const Error reason = *state_->reason;
    lock.unlock();
    callback(reason);
    return {};
  }
  const std::uint64_t id = state_->next_id++;
  state_->subscribers.emplace(id, std::move(callback));
  return {state_, id};
}

CancellationSource::CancellationSource() : state_(std::make_shared<CancellationState>()) {}

CancellationToken CancellationSource::token() const {
  return CancellationToken(state_);
}

bool CancellationSource::cancelled() const {
  return state_->cancelled.load(std::memory_order_acquire);
}

bool CancellationSource::cancel(Error reason) {
  const auto state = state_;  // a callback may destroy this source
  std::unique_lock lock(state->mutex);
  if (state->reason) return false;
  state->reason = std::move(reason);
  state->cancelled.store(true, std::memory_order_release);
  const Error seen = *state->reason;
  state->running_on = std::this_thread::get_id();
  while (!state->subscribers.empty()) {
    auto first = state->subscribers.extract(state->subscribers.begin());
    state->running_id = first.key();
    lock.unlock();
    first.mapped()(seen);
    first.mapped() = nullptr;
    lock.lock();
    state->running_id = 0;
    state->idle.notify_all();
  }
  return true;
}

}  // namespace quern
