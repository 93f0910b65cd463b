// Rotary angles.
#include "quern/ops/rope.h"

#include <cmath>

namespace quern::ops {

void rope_angles(const Rope& rope, std::int32_t position, float* cosines, float* sines) {
  for (std::size_t i = 0; i < rope.inverse_frequency.size(); ++i) {
    const double angle = static_cast<float>(position) * rope.inverse_frequency[i];
    cosines[i] = static_cast<float>(std::cos(angle)) * rope.magnitude;
    sines[i] = static_cast<float>(std::sin(angle)) * rope.magnitude;
  }
}

}  // namespace quern::ops
