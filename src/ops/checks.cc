// The rules that device.h states, as checks.
#include "quern/ops/checks.h"

#include "quern/base/check.h"

namespace quern::ops {
namespace {

void check_mat(const Mat& mat) {
  QUERN_CHECK(mat.rows >= 0 && mat.cols > 0 && (mat.rows <= 1 || mat.stride >= mat.cols));
  QUERN_CHECK(mat.data != nullptr || mat.rows == 0);
}

void check_same(const Mat& a, const Mat& b) {
  check_mat(a);
  check_mat(b);
  QUERN_CHECK(a.rows == b.rows && a.cols == b.cols);
}

void check_batch(const Batch& batch, const KvLayer& kv, tensor::DType kv_dtype, const AttentionShape& shape) {
  QUERN_CHECK(shape.heads > 0 && shape.kv_heads > 0 && shape.head_dim > 0 && shape.heads % shape.kv_heads == 0);
  QUERN_CHECK(shape.head_dim <= kMaxHeadDim && shape.window >= 0);
  QUERN_CHECK(kv.dtype == kv_dtype && kv.kv_heads == shape.kv_heads && kv.head_dim == shape.head_dim);
  std::int64_t next = 0;
  for (const BatchRow& row : batch.rows) {
    QUERN_CHECK(row.first_token == next && row.tokens > 0 && row.first_position >= 0);
    next += row.tokens;
    const std::int64_t end = static_cast<std::int64_t>(row.first_position) + row.tokens;
    const std::int64_t used = (end + kPageTokens - 1) / kPageTokens;
    QUERN_CHECK(static_cast<std::int64_t>(row.pages.size()) >= used);
    for (const std::int32_t page : row.pages.first(static_cast<std::size_t>(used))) {
      QUERN_CHECK(page >= 0 && page < kv.pages);
    }
  }
  QUERN_CHECK(next == static_cast<std::int64_t>(batch.tokens.size()));
}

void check_tokens(const Batch& batch, const Mat& mat, std::int64_t cols) {
  check_mat(mat);
  QUERN_CHECK(mat.rows == static_cast<std::int64_t>(batch.tokens.size()) && mat.cols == cols);
}

}  // namespace

std::int64_t part_rows(const WeightPart& part) {
  return part.row_order.empty() ? part.view.rows : static_cast<std::int64_t>(part.row_order.size());
}

std::int64_t source_row(const WeightPart& part, std::int64_t row) {
  return part.row_order.empty() ? row : part.row_order[static_cast<std::size_t>(row)];
}

Result<PackedShape> check_parts(std::span<const WeightPart> parts) {
  QUERN_CHECK(!parts.empty());
  PackedShape shape{.rows = 0, .cols = parts.front().view.cols};
  for (const WeightPart& part : parts) {
    QUERN_TRY(tensor::check_matrix(part.view));
    if (part.view.cols != shape.cols) {
      return fail(ErrorCode::kInvalidFile, "matrices that are stacked have {} and {} columns", shape.cols,
                  part.view.cols);
    }
    for (const std::int32_t row : part.row_order) QUERN_CHECK(row >= 0 && row < part.view.rows);
    shape.rows += part_rows(part);
  }
  return shape;
}

void check_embed(const Weight& table, std::span<const std::int32_t> ids, const Mat& out) {
  check_mat(out);
  QUERN_CHECK(out.rows == static_cast<std::int64_t>(ids.size()) && out.cols == table.cols());
  for (const std::int32_t id : ids) QUERN_CHECK(id >= 0 && id < table.rows());
}

void check_rms_norm(const Mat& x, std::span<const float> weight, const Mat& out) {
  check_same(x, out);
  QUERN_CHECK(static_cast<std::int64_t>(weight.size()) == x.cols);
}

void check_linear(const Weight& weight, const Mat& x, const Mat& y, const LinearOptions& options) {
  check_mat(x);
  check_mat(y);
  QUERN_CHECK(x.rows == y.rows && x.cols == weight.cols() && y.cols == weight.rows());
  QUERN_CHECK(options.bias.empty() || static_cast<std::int64_t>(options.bias.size()) == y.cols);
}

void check_rope_store(const Batch& batch, const Rope& rope, const AttentionShape& shape, const Mat& q, const Mat& k,
                      const Mat& v, const KvLayer& kv, tensor::DType kv_dtype) {
  check_batch(batch, kv, kv_dtype, shape);
  check_tokens(batch, q, std::int64_t{shape.heads} * shape.head_dim);
  check_tokens(batch, k, std::int64_t{shape.kv_heads} * shape.head_dim);
  check_tokens(batch, v, std::int64_t{shape.kv_heads} * shape.head_dim);
  QUERN_CHECK(2 * rope.inverse_frequency.size() <= static_cast<std::size_t>(shape.head_dim));
}

void check_attention(const Batch& batch, const AttentionShape& shape, const Mat& q, const KvLayer& kv, const Mat& out,
                     tensor::DType kv_dtype) {
  check_batch(batch, kv, kv_dtype, shape);
  check_tokens(batch, q, std::int64_t{shape.heads} * shape.head_dim);
  check_tokens(batch, out, std::int64_t{shape.heads} * shape.head_dim);
}

void check_gated(const Mat& gate, const Mat& up, const Mat& out) {
  check_same(gate, up);
  check_same(gate, out);
}

}  // namespace quern::ops
