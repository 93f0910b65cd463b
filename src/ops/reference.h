// The scalar f32 reference: the definition of each operation.
#pragma once

#include <memory>

#include "quern/ops/device.h"

namespace quern::ops {

/// Plain loops over f32: weights dequantized, activations and KV in f32, one thread. Slow; what others are checked
/// against.
[[nodiscard]] std::unique_ptr<Device> make_reference_device();

}  // namespace quern::ops
