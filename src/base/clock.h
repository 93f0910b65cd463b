// Clock: the time, injected, so that tests own it.
#pragma once

#include <chrono>

namespace quern {

/// Monotonic time for durations, wall time for what people and events see. Thread-safe.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] WallTime wall_now() const override;
};

/// Milliseconds between two points.
[[nodiscard]] double elapsed_ms(Clock::TimePoint from, Clock::TimePoint to);

}  // namespace quern
