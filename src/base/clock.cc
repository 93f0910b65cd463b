// The machine's clock.
#include "quern/base/clock.h"

namespace quern {

Clock::TimePoint SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

Clock::WallTime SystemClock::wall_now() const {
  return std::chrono::system_clock::now();
}

double elapsed_ms(Clock::TimePoint from, Clock::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace quern
