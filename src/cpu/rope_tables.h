// RopeTables: the angles of a batch, kept while its layers run.
#pragma once

#include <cstdint>
#include <vector>

#include "quern/ops/device.h"

namespace quern::cpu {

/// Remembers the last batches' cosines and sines, so that only the first layer of a forward pass computes them. Models
/// alternate between two ropes at most. One thread at a time.
class RopeTables {
 public:
  /// [T, 2, n]: token t's n cosines, then its n sines, for n inverse frequencies. Valid until the next call.
  [[nodiscard]] const float* angles(const ops::Batch& batch, const ops::Rope& rope);

 private:
  struct Table {
    std::vector<float> inverse_frequency;
    float magnitude = 0.0F;
    std::vector<std::int32_t> positions;
    std::vector<float> angles;
  };
  Table tables_[2];
  std::size_t oldest_ = 0;
  std::vector<std::int32_t> positions_;
};

}  // namespace quern::cpu
