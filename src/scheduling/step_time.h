// StepTime: how long an iteration takes, learned as it runs.
#pragma once

#include <array>
#include <cstdint>

namespace quern::scheduling {

/// What an iteration's time depends on.
struct StepLoad {
  std::int64_t tokens = 0;  // packed, of all rows
  std::int64_t keys = 0;    // sum over the tokens of the keys that each attends to
};

/// ms = a + b * tokens + c * keys, fitted by recursive least squares that forget slowly, so that a slower clock or
/// another neighbour is followed. Never predicts less than nothing. One thread owns it; no clock of its own.
class StepTime {
 public:
  StepTime();
  /// An iteration of this load took so long.
  void observe(const StepLoad& load, double ms);
  [[nodiscard]] double predict(const StepLoad& load) const;
  /// The most tokens of a prompt, which has `context` tokens before them, that can join `running` within `target_ms`; 0
  /// to `most`. Before anything was observed: `most`.
  [[nodiscard]] std::int64_t tokens_within(double target_ms, const StepLoad& running, std::int64_t context,
                                           std::int64_t most) const;

 private:
  using Vector = std::array<double, 3>;
  [[nodiscard]] static Vector features(const StepLoad& load);

  Vector weights_{};
  std::array<Vector, 3> covariance_{};
  std::int64_t observations_ = 0;
};

}  // namespace quern::scheduling
