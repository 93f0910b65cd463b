// PackedMatrix: a weight matrix in panels of sixteen output lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quern/cpu/kernels.h"
#include "quern/cpu/worker_pool.h"
#include "quern/ops/device.h"
#include "quern/tensor/buffer.h"

namespace quern::cpu {

/// How a matrix is kept. Parts with the same format are stacked into one matrix.
struct PackedFormat {
  CodeType code_type = CodeType::kF32;
  ScaleType scale_type = ScaleType::kF32;
  std::int64_t group = 0;
  float center = 0.0F;

  [[nodiscard]] bool quantized() const { return code_type == CodeType::kU4 || code_type == CodeType::kU8; }
  friend bool operator==(const PackedFormat&, const PackedFormat&) = default;
};
[[nodiscard]] PackedFormat packed_format(const tensor::MatrixView& view);

/// [N, K] as N / 16 panels, the last one filled up with zeros. A panel's codes, outermost first:
///   kU4   [K / 8][16 lanes][4]  byte j holds column j in its low nibble and column j + 4 in its high one
///   kU8   [K / 4][16 lanes][4]
///   else  [K][16 lanes]
/// Scales and biases are [panel][K / group][16 lanes], in two bytes where those are exact; symmetric matrices have no
/// biases. Codes of 2 and 3 bits take 4, of 5 and 6 take 8. Immutable.
class PackedMatrix {
 public:
  /// Packs rows of parts that share `format`; spreads the work over the pool.
  PackedMatrix(std::span<const ops::WeightPart> parts, PackedFormat format, WorkerPool& pool);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t panels() const { return (rows_ + kLanes - 1) / kLanes; }
  [[nodiscard]] std::int64_t panel_bytes() const { return panel_bytes_; }
  [[nodiscard]] std::size_t bytes() const { return codes_.bytes() + scales_.bytes() + biases_.bytes(); }
  [[nodiscard]] const PackedFormat& format() const { return format_; }
  [[nodiscard]] PanelView view() const;

  /// out [K] = scale * row, with the very f32 values that tensor::dequantize_row gives.
  void dequantize(std::int64_t row, float scale, float* out) const;

 private:
  void pack_panel(std::span<const ops::WeightPart> parts, std::int64_t panel);
  void pack_floats(std::span<const ops::WeightPart> parts, std::int64_t panel);
  void pack_codes(const std::uint8_t* rows, std::int64_t panel);

  PackedFormat format_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t panel_bytes_ = 0;
  tensor::Buffer<std::uint8_t> codes_;
  tensor::Buffer<std::uint8_t> scales_;
  tensor::Buffer<std::uint8_t> biases_;
};

/// What the device hands out: stacked matrices of different formats.
class CpuWeight final : public ops::Weight {
 public:
  CpuWeight(std::int64_t rows, std::int64_t cols, std::vector<PackedMatrix> matrices)
      : rows_(rows), cols_(cols), matrices_(std::move(matrices)) {}
  [[nodiscard]] std::int64_t rows() const override { return rows_; }
  [[nodiscard]] std::int64_t cols() const override { return cols_; }
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] std::span<const PackedMatrix> matrices() const { return matrices_; }

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  std::vector<PackedMatrix> matrices_;
};

/// As Device::pack.
[[nodiscard]] Result<std::unique_ptr<ops::Weight>> pack_weight(std::span<const ops::WeightPart> parts,
                                                               WorkerPool& pool);

}  // namespace quern::cpu
