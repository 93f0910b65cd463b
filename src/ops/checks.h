// Checks of shapes that every device makes before it computes: a wrong one is a bug of ours and ends the process.
#pragma once

#include <cstdint>
#include <span>

#include "quern/base/result.h"
#include "quern/ops/device.h"

namespace quern::ops {

/// [N, K] of the stacked parts. The views come from files: kInvalidFile when one contradicts itself or the others' K.
struct PackedShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
[[nodiscard]] Result<PackedShape> check_parts(std::span<const WeightPart> parts);

/// Output rows of one part.
[[nodiscard]] std::int64_t part_rows(const WeightPart& part);
/// The view's row that output row `row` of the part is made of.
[[nodiscard]] std::int64_t source_row(const WeightPart& part, std::int64_t row);

void check_embed(const Weight& table, std::span<const std::int32_t> ids, const Mat& out);
void check_rms_norm(const Mat& x, std::span<const float> weight, const Mat& out);
void check_linear(const Weight& weight, const Mat& x, const Mat& y, const LinearOptions& options);
void check_rope_store(const Batch& batch, const Rope& rope, const AttentionShape& shape, const Mat& q, const Mat& k,
                      const Mat& v, const KvLayer& kv, tensor::DType kv_dtype);
void check_attention(const Batch& batch, const AttentionShape& shape, const Mat& q, const KvLayer& kv, const Mat& out,
                     tensor::DType kv_dtype);
void check_gated(const Mat& gate, const Mat& up, const Mat& out);

}  // namespace quern::ops
