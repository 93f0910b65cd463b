// Thread: a named thread that is joined when its owner goes.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

namespace quern::os {

/// Runs `body` on a new thread whose name (15 characters at most, as the system allows) shows in debuggers and top.
/// Every signal is blocked in it, so that only main handles them. An exception that escapes `body` ends the process.
class Thread {
 public:
  Thread() = default;
  Thread(std::string_view name, std::function<void()> body);
  Thread(Thread&&) = default;
  /// Joins what it held before.
  Thread& operator=(Thread&& other) noexcept;
  /// Joins. Whatever makes the body return must have happened.
  ~Thread();
  void join();
  [[nodiscard]] bool joinable() const { return thread_.joinable(); }

 private:
  std::thread thread_;
};

}  // namespace quern::os
