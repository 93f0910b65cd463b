// The count of running requests.
#include "quern/server/busy_count.h"

#include <utility>

namespace quern::server {

void BusyCount::enter() {
  const std::scoped_lock lock(mutex_);
  ++busy_;
}

void BusyCount::leave() {
  const std::scoped_lock lock(mutex_);
  --busy_;
  changed_.notify_all();
}

bool BusyCount::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return busy_ == 0 || interrupted_; });
  interrupted_ = false;
  return busy_ == 0;
}

void BusyCount::interrupt() {
  const std::scoped_lock lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

}  // namespace quern::server
