// A table is found by its inputs' values, not by their addresses.
#include "quern/cpu/rope_tables.h"

#include <algorithm>

#include "quern/ops/rope.h"

namespace quern::cpu {

const float* RopeTables::angles(const ops::Batch& batch, const ops::Rope& rope) {
  positions_.clear();
  for (const ops::BatchRow& row : batch.rows) {
    for (std::int32_t i = 0; i < row.tokens; ++i) positions_.push_back(row.first_position + i);
  }
  for (const Table& table : tables_) {
    if (table.magnitude == rope.magnitude && table.positions == positions_ &&
        std::ranges::equal(table.inverse_frequency, rope.inverse_frequency)) {
      return table.angles.data();
    }
  }
  Table& table = tables_[oldest_];
  oldest_ = 1 - oldest_;
  const std::size_t half = rope.inverse_frequency.size();
  table.inverse_frequency.assign(rope.inverse_frequency.begin(), rope.inverse_frequency.end());
  table.magnitude = rope.magnitude;
  table.positions = positions_;
  table.angles.resize(positions_.size() * 2 * half);
  for (std::size_t t = 0; t < positions_.size(); ++t) {
    float* at = table.angles.data() + t * 2 * half;
    ops::rope_angles(rope, positions_[t], at, at + half);
  }
  return table.angles.data();
}

}  // namespace quern::cpu
