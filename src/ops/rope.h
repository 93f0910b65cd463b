// The angles of rotary embedding, as every device takes them.
#pragma once

#include <cstdint>

#include "quern/ops/device.h"

namespace quern::ops {

/// Cosines and sines for one position, times the magnitude; each [rotary_dim / 2]. The angle is the f32 product of
/// position and inverse frequency; its sine and cosine are those of f64, rounded.
void rope_angles(const Rope& rope, std::int32_t position, float* cosines, float* sines);

}  // namespace quern::ops
