// The driver: which unit of work a group runs next. It knows no model, no token and no time target.
#pragma once

#include <chrono>

#include "quern/base/clock.h"
#include "quern/base/result.h"
#include "quern/scheduling/execution_group.h"

namespace quern::scheduling {

/// Time and the place where output is flushed and new work is observed. Injected: tests own both.
class SchedulingClock {
 public:
  virtual ~SchedulingClock() = default;
  [[nodiscard]] virtual Clock::TimePoint now() const = 0;
  virtual void yield() = 0;
};

struct DriveOptions {
  /// Yield at once when a lone request's preparation ends, so that its first token isn't held back.
  bool early_first_token = true;
  /// A lone row decodes this long without yielding.
  std::chrono::milliseconds lone_row_yield{25};
  /// What everything fails with when the group is closed.
  Error close_reason{ErrorCode::kServerClosing, "scheduler closed"};
};

/// Runs the group's work on this thread until the group is closed (success, once all has failed with close_reason) or a
/// unit other than a decode step fails (that error; all has failed with it). Leases are given back on every way out;
/// errors of that are added to the message.
[[nodiscard]] Result<void> drive(ExecutionGroup& group, SchedulingClock& clock, const DriveOptions& options = {});

}  // namespace quern::scheduling
