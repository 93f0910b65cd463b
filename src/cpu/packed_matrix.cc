// Packing: sixteen rows are decoded, then written across, so that one register holds sixteen outputs' next codes.
#include "quern/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "quern/base/check.h"
#include "quern/ops/checks.h"
#include "quern/tensor/dtype.h"

namespace quern::cpu {
namespace {

constexpr std::int64_t kPanelsInChunk = 8;

std::int64_t scale_bytes(ScaleType type) {
  return type == ScaleType::kF32 ? 4 : 2;
}

void store_scale(ScaleType type, float value, std::uint8_t* base, std::int64_t index) {
  if (type == ScaleType::kF32) {
    std::memcpy(base + 4 * index, &value, 4);
    return;
  }
  const std::uint16_t half = type == ScaleType::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
  std::memcpy(base + 2 * index, &half, 2);
}

float load_scale(ScaleType type, const std::uint8_t* base, std::int64_t index) {
  if (type == ScaleType::kF32) {
    float value = 0.0F;
    std::memcpy(&value, base + 4 * index, 4);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, base + 2 * index, 2);
  return type == ScaleType::kF16 ? tensor::f16_to_f32(half) : tensor::bf16_to_f32(half);
}

std::int64_t float_bytes(CodeType type) {
  return type == CodeType::kF32 ? 4 : 2;
}

std::int64_t panel_bytes(const PackedFormat& format, std::int64_t cols) {
  switch (format.code_type) {
    case CodeType::kU4:
      return cols / 8 * 4 * kLanes;
    case CodeType::kU8:
      return cols * kLanes;
    default:
      return cols * kLanes * float_bytes(format.code_type);
  }
}

/// Where row `row` of the stacked parts comes from.
struct SourceRow {
  const tensor::MatrixView* view;
  std::int64_t row;
};
SourceRow find_row(std::span<const ops::WeightPart> parts, std::int64_t row) {
  for (const ops::WeightPart& part : parts) {
    if (row < ops::part_rows(part)) return {&part.view, ops::source_row(part, row)};
    row -= ops::part_rows(part);
  }
  QUERN_CHECK(false);
}

}  // namespace

PackedFormat packed_format(const tensor::MatrixView& view) {
  const std::optional<tensor::AffineForm> form = tensor::affine_form(view);
  if (!form) {
    const CodeType type = view.encoding == tensor::Encoding::kF32   ? CodeType::kF32
                          : view.encoding == tensor::Encoding::kF16 ? CodeType::kF16
                                                                    : CodeType::kBf16;
    return {.code_type = type, .group = view.cols};
  }
  return {.code_type = form->bits <= 4 ? CodeType::kU4 : CodeType::kU8,
          .scale_type = form->f16_scales    ? ScaleType::kF16
                        : form->bf16_scales ? ScaleType::kBf16
                                            : ScaleType::kF32,
          .group = form->group,
          .center = form->symmetric ? static_cast<float>(1 << (form->bits - 1)) : 0.0F};
}

PackedMatrix::PackedMatrix(std::span<const ops::WeightPart> parts, PackedFormat format, WorkerPool& pool)
    : format_(format), cols_(parts.front().view.cols), panel_bytes_(cpu::panel_bytes(format, cols_)) {
  for (const ops::WeightPart& part : parts) rows_ += ops::part_rows(part);
  using Bytes = tensor::Buffer<std::uint8_t>;
  codes_ = Bytes(static_cast<std::size_t>(panels() * panel_bytes_), Bytes::Fill::kNone);
  if (format_.quantized()) {
    const std::int64_t bytes = panels() * (cols_ / format_.group) * kLanes * scale_bytes(format_.scale_type);
    scales_ = Bytes(static_cast<std::size_t>(bytes), Bytes::Fill::kNone);
    if (format_.center == 0.0F) biases_ = Bytes(static_cast<std::size_t>(bytes), Bytes::Fill::kNone);
  }
  pool.run((panels() + kPanelsInChunk - 1) / kPanelsInChunk, [&](std::int64_t chunk) {
    const std::int64_t end = std::min(panels(), (chunk + 1) * kPanelsInChunk);
    for (std::int64_t panel = chunk * kPanelsInChunk; panel < end; ++panel) {
      format_.quantized() ? pack_panel(parts, panel) : pack_floats(parts, panel);
    }
  });
}

void PackedMatrix::pack_panel(std::span<const ops::WeightPart> parts, std::int64_t panel) {
  const std::int64_t groups = cols_ / format_.group;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(kLanes * cols_));
  std::vector<float> scales(static_cast<std::size_t>(groups));
  std::vector<float> biases(static_cast<std::size_t>(groups));
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t row = panel * kLanes + lane;
    if (row < rows_) {
      const SourceRow source = find_row(parts, row);
      tensor::decode_affine_row(*source.view, source.row, codes.data() + lane * cols_, scales.data(), biases.data());
    } else {
      std::ranges::fill(scales, 0.0F);
      std::ranges::fill(biases, 0.0F);
    }
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t index = (panel * groups + g) * kLanes + lane;
      store_scale(format_.scale_type, scales[static_cast<std::size_t>(g)], scales_.data(), index);
      if (biases_.size() == 0) continue;
      store_scale(format_.scale_type, biases[static_cast<std::size_t>(g)], biases_.data(), index);
    }
  }
  pack_codes(codes.data(), panel);
}

void PackedMatrix::pack_codes(const std::uint8_t* rows, std::int64_t panel) {
  std::uint8_t* out = codes_.data() + panel * panel_bytes_;
  const bool nibbles = format_.code_type == CodeType::kU4;
  for (std::int64_t k = 0; k < cols_; k += nibbles ? 8 : 4) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane, out += 4) {
      std::uint32_t four = 0;
      std::memcpy(&four, rows + lane * cols_ + k, 4);
      if (nibbles) {
        std::uint32_t next = 0;
        std::memcpy(&next, rows + lane * cols_ + k + 4, 4);
        four |= next << 4;
      }
      std::memcpy(out, &four, 4);
    }
  }
}

void PackedMatrix::pack_floats(std::span<const ops::WeightPart> parts, std::int64_t panel) {
  const std::int64_t size = float_bytes(format_.code_type);
  std::uint8_t* out = codes_.data() + panel * panel_bytes_;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t row = panel * kLanes + lane;
    const SourceRow source = row < rows_ ? find_row(parts, row) : SourceRow{nullptr, 0};
    for (std::int64_t k = 0; k < cols_; ++k) {
      std::uint8_t* at = out + (k * kLanes + lane) * size;
      if (source.view == nullptr) {
        std::memset(at, 0, static_cast<std::size_t>(size));
      } else {
        const std::size_t from = static_cast<std::size_t>(source.row) * source.view->row_bytes();
        std::memcpy(at, source.view->data.data() + from + k * size, static_cast<std::size_t>(size));
      }
    }
  }
}

PanelView PackedMatrix::view() const {
  return {.code_type = format_.code_type,
          .scale_type = format_.scale_type,
          .rows = rows_,
          .cols = cols_,
          .group = format_.group,
          .center = format_.center,
          .codes = codes_.data(),
          .scales = scales_.data(),
          .biases = biases_.data(),
          .panel_bytes = panel_bytes_};
}

void PackedMatrix::dequantize(std::int64_t row, float scale, float* out) const {
  const std::int64_t panel = row / kLanes;
  const std::int64_t lane = row % kLanes;
  const std::uint8_t* codes = codes_.data() + panel * panel_bytes_;
  if (!format_.quantized()) {
    const ScaleType type = format_.code_type == CodeType::kF32   ? ScaleType::kF32
                           : format_.code_type == CodeType::kF16 ? ScaleType::kF16
                                                                 : ScaleType::kBf16;
    for (std::int64_t k = 0; k < cols_; ++k) out[k] = scale * load_scale(type, codes, k * kLanes + lane);
    return;
  }
  const std::int64_t groups = cols_ / format_.group;
  const bool nibbles = format_.code_type == CodeType::kU4;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t index = (panel * groups + g) * kLanes + lane;
    const float group_scale = load_scale(format_.scale_type, scales_.data(), index);
    const float bias =
        biases_.size() == 0 ? -format_.center * group_scale : load_scale(format_.scale_type, biases_.data(), index);
    for (std::int64_t k = g * format_.group; k < (g + 1) * format_.group; ++k) {
      const std::int64_t block = nibbles ? k / 8 : k / 4;
      const int byte = codes[(block * kLanes + lane) * 4 + k % 4];
      const int code = !nibbles ? byte : k % 8 < 4 ? byte & 0xf : byte >> 4;
      out[k] = scale * (group_scale * static_cast<float>(code) + bias);
    }
  }
}

std::size_t CpuWeight::bytes() const {
  std::size_t total = 0;
  for (const PackedMatrix& matrix : matrices_) total += matrix.bytes();
  return total;
}

Result<std::unique_ptr<ops::Weight>> pack_weight(std::span<const ops::WeightPart> parts, WorkerPool& pool) {
  QUERN_ASSIGN(const ops::PackedShape shape, ops::check_parts(parts));
  std::vector<PackedMatrix> matrices;
  while (!parts.empty()) {
    const PackedFormat format = packed_format(parts.front().view);
    std::size_t same = 1;
    while (same < parts.size() && packed_format(parts[same].view) == format) ++same;
    matrices.emplace_back(parts.first(same), format, pool);
    parts = parts.subspan(same);
  }
  return std::unique_ptr<ops::Weight>(std::make_unique<CpuWeight>(shape.rows, shape.cols, std::move(matrices)));
}

}  // namespace quern::cpu
