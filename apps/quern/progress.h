// Progress of long work: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <string>

#include "quern/base/clock.h"

namespace quern::app {

/// Writes to standard error. For one thread at a time.
class Progress {
 public:
  /// `clock` must outlive it.
  Progress(std::string what, bool terminal, const Clock& clock);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes an unfinished bar off the terminal.
  ~Progress();
  /// `share` done, 0 to 1. Redraws, or writes a line, only now and then.
  void update(double share);
  /// The work is done: says so, with the time that it took.
  void finish();

 private:
  std::string what_;
  const bool terminal_;
  const Clock& clock_;
  const Clock::TimePoint begin_;
  Clock::TimePoint shown_;
  bool drawn_ = false;
};

}  // namespace quern::app
