// BusyCount: how many requests are being answered, and the wait for none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace quern::server {

/// Thread-safe.
class BusyCount {
 public:
  void enter();
  void leave();
  /// True once none is left; false after `timeout`, or as soon as interrupt() was called.
  [[nodiscard]] bool wait_until_idle(std::chrono::milliseconds timeout);
  /// Ends a wait, or the next one.
  void interrupt();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int busy_ = 0;
  bool interrupted_ = false;
};

/// Counts one for as long as it lives.
class BusyGuard {
 public:
  explicit BusyGuard(BusyCount& count) : count_(count) { count_.enter(); }
  BusyGuard(const BusyGuard&) = delete;
  BusyGuard& operator=(const BusyGuard&) = delete;
  ~BusyGuard() { count_.leave(); }

 private:
  BusyCount& count_;
};

}  // namespace quern::server
