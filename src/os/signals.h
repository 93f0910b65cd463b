// SignalWatch: SIGINT and SIGTERM as something that one thread waits for.
#pragma once

#include <optional>

#include "quern/base/result.h"
#include "quern/os/descriptor.h"

namespace quern::os {

/// Blocks SIGINT and SIGTERM in the calling thread (and so in the threads that it starts afterwards) and ignores
/// SIGPIPE in the process; the signals then arrive in wait(). One a process, made by main before any thread starts.
class SignalWatch {
 public:
  /// kIo when the system refuses.
  [[nodiscard]] static Result<SignalWatch> make();

  /// Waits for a signal and gives its number, or nothing once wake() was called.
  [[nodiscard]] std::optional<int> wait();
  /// Ends every wait, this one or the next. Thread-safe.
  void wake();

 private:
  SignalWatch(Descriptor signals, Descriptor wake) : signals_(std::move(signals)), wake_(std::move(wake)) {}
  Descriptor signals_;
  Descriptor wake_;
};

}  // namespace quern::os
