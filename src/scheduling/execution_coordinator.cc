// The coordinator's queue: one waiter an entry, granted from the front as long as the front fits.
#include "quern/scheduling/execution_coordinator.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "quern/base/check.h"

namespace quern::scheduling {

namespace {
const Error kClosed{ErrorCode::kServerClosing, "the device is closing"};
}

struct ExecutionCoordinator::State : std::enable_shared_from_this<State> {
  struct Waiter {
    bool exclusive = false;
    bool granted = false;
    std::optional<Error> refused;
    std::condition_variable wake;
    [[nodiscard]] bool waits() const { return !granted && !refused; }
  };

  explicit State(std::size_t limit) : queue_limit(limit) {}

  const std::size_t queue_limit;
  mutable std::mutex mutex;
  std::list<Waiter> queue;  // those that wait, in the order of their coming
  int sharers = 0;
  bool exclusive = false;
  bool closed = false;
  std::vector<std::function<void()>> callbacks;

  [[nodiscard]] std::size_t count_waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(queue, &Waiter::waits));
  }

  // Grants from the front, as long as the front fits.
  void grant() {
    for (Waiter& waiter : queue) {
      if (!waiter.waits()) continue;
      if (exclusive || (waiter.exclusive && sharers > 0)) return;
      if (waiter.exclusive) {
        exclusive = true;
      } else {
        ++sharers;
      }
      waiter.granted = true;
      waiter.wake.notify_all();
    }
  }

  void give_back(bool was_exclusive) {
    {
      const std::scoped_lock lock(mutex);
      if (was_exclusive) {
        QUERN_CHECK(exclusive);
        exclusive = false;
      } else {
        QUERN_CHECK(sharers > 0);
        --sharers;
      }
      grant();
    }
    announce();
  }

  void announce() {
    std::vector<std::function<void()>> current;
    {
      const std::scoped_lock lock(mutex);
      current = callbacks;
    }
    for (const auto& callback : current) callback();
  }

  Result<Lease> acquire(bool wants_exclusive, const CancellationToken& cancellation) {
    std::unique_lock lock(mutex);
    if (closed) return fail(kClosed);
    if (count_waiting() >= queue_limit) {
      return fail(ErrorCode::kQueueFull, "{} users wait for the device already", queue_limit);
    }
    const auto self = queue.emplace(queue.end());
    self->exclusive = wants_exclusive;
    grant();
    lock.unlock();
    if (wants_exclusive) announce();
    // Without the lock: a token that was cancelled already calls at once.
    auto subscription = cancellation.subscribe([&](const Error& reason) {
      const std::scoped_lock inner(mutex);
      if (self->waits()) self->refused = reason;
      self->wake.notify_all();
    });
    lock.lock();
    self->wake.wait(lock, [&] { return !self->waits(); });
    lock.unlock();
    subscription.reset();  // its callback may need the lock
    lock.lock();
    const auto refused = std::move(self->refused);
    queue.erase(self);
    grant();  // whoever stood behind a writer that gave up
    lock.unlock();
    if (refused) {
      announce();
      return fail(*refused);
    }
    return Lease([state = shared_from_this(), wants_exclusive] { state->give_back(wants_exclusive); });
  }
};

ExecutionCoordinator::ExecutionCoordinator(std::size_t queue_limit) : state_(std::make_shared<State>(queue_limit)) {}

ExecutionCoordinator::~ExecutionCoordinator() {
  close();
}

Result<Lease> ExecutionCoordinator::acquire_shared(const CancellationToken& cancellation) {
  return state_->acquire(false, cancellation);
}

Result<Lease> ExecutionCoordinator::acquire_exclusive(const CancellationToken& cancellation) {
  return state_->acquire(true, cancellation);
}

bool ExecutionCoordinator::exclusive_wanted() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->exclusive ||
         std::ranges::any_of(state_->queue, [](const State::Waiter& w) { return w.exclusive && w.waits(); });
}

void ExecutionCoordinator::on_change(std::function<void()> callback) {
  const std::scoped_lock lock(state_->mutex);
  state_->callbacks.push_back(std::move(callback));
}

std::size_t ExecutionCoordinator::waiting() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->count_waiting();
}

void ExecutionCoordinator::close() {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->closed) return;
    state_->closed = true;
    for (State::Waiter& waiter : state_->queue) {
      if (waiter.waits()) waiter.refused = kClosed;
      waiter.wake.notify_all();
    }
  }
  state_->announce();
}

}  // namespace quern::scheduling
