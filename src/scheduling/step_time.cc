// Recursive least squares over three features.
#include "quern/scheduling/step_time.h"

#include <algorithm>
#include <cstddef>

namespace quern::scheduling {
namespace {

constexpr double kForget = 0.98;      // weight of what lies one iteration further back
constexpr double kUncertainty = 1e4;  // of the weights before anything was seen
constexpr double kKeyScale = 1e-3;    // keys come in thousands: keeps the features of one magnitude

}  // namespace

StepTime::StepTime() {
  for (std::size_t i = 0; i < 3; ++i) covariance_[i][i] = kUncertainty;
}

StepTime::Vector StepTime::features(const StepLoad& load) {
  return {1.0, static_cast<double>(load.tokens), static_cast<double>(load.keys) * kKeyScale};
}

void StepTime::observe(const StepLoad& load, double ms) {
  const Vector x = features(load);
  Vector px{};
  double denominator = kForget;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) px[i] += covariance_[i][j] * x[j];
    denominator += x[i] * px[i];
  }
  double error = ms;
  for (std::size_t i = 0; i < 3; ++i) error -= weights_[i] * x[i];
  for (std::size_t i = 0; i < 3; ++i) {
    weights_[i] += px[i] / denominator * error;
    for (std::size_t j = 0; j < 3; ++j) {
      covariance_[i][j] = (covariance_[i][j] - px[i] * px[j] / denominator) / kForget;
    }
  }
  // Loads that never vary leave directions unobserved, in which forgetting alone would grow without end.
  for (std::size_t i = 0; i < 3; ++i) covariance_[i][i] = std::min(covariance_[i][i], kUncertainty);
  ++observations_;
}

double StepTime::predict(const StepLoad& load) const {
  const Vector x = features(load);
  double ms = 0.0;
  for (std::size_t i = 0; i < 3; ++i) ms += std::max(weights_[i], 0.0) * x[i];
  return ms;
}

std::int64_t StepTime::tokens_within(double target_ms, const StepLoad& running, std::int64_t context,
                                     std::int64_t most) const {
  if (observations_ == 0) return most;
  // Increasing in the tokens: the largest that fits, by halving.
  const auto fits = [&](std::int64_t tokens) {
    const std::int64_t keys = tokens * context + tokens * (tokens + 1) / 2;
    return predict({running.tokens + tokens, running.keys + keys}) <= target_ms;
  };
  std::int64_t low = 0;
  std::int64_t high = most;
  while (low < high) {
    const std::int64_t middle = high - (high - low) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace quern::scheduling
