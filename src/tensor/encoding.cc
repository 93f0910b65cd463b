// The table of encodings, the checks of a view's shape and bytes, and the way from a view to affine rows and to f32.
#include "quern/tensor/encoding.h"

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "quern/base/check.h"
#include "quern/tensor/blocks.h"

namespace quern::tensor {
namespace {

struct Row {
  std::string_view name;
  std::int64_t block_cols;   // columns that are encoded together
  std::int64_t block_bytes;  // 0: depends on the view (kAffine)
  AffineForm form;           // bits 0: plain floats, or as the view says (kAffine)
};

constexpr std::array<Row, 15> kTable = {{
    {"F32", 1, 4, {}},
    {"F16", 1, 2, {}},
    {"BF16", 1, 2, {}},
    {"Q4_0", 32, 18, {.bits = 4, .group = 32, .symmetric = true, .f16_scales = true}},
    {"Q4_1", 32, 20, {.bits = 4, .group = 32, .f16_scales = true}},
    {"Q5_0", 32, 22, {.bits = 5, .group = 32, .symmetric = true, .f16_scales = true}},
    {"Q5_1", 32, 24, {.bits = 5, .group = 32, .f16_scales = true}},
    {"Q8_0", 32, 34, {.bits = 8, .group = 32, .symmetric = true, .f16_scales = true}},
    {"Q2_K", 256, 84, {.bits = 2, .group = 16}},
    {"Q3_K", 256, 110, {.bits = 3, .group = 16, .symmetric = true}},
    {"Q4_K", 256, 144, {.bits = 4, .group = 32}},
    {"Q5_K", 256, 176, {.bits = 5, .group = 32}},
    {"Q6_K", 256, 210, {.bits = 6, .group = 16, .symmetric = true}},
    {"affine", 1, 0, {}},
    {"mxfp4", 32, 16, {.bits = 5, .group = 32, .symmetric = true, .bf16_scales = true}},
}};

const Row& row_of(Encoding encoding) {
  const auto index = static_cast<std::size_t>(encoding);
  QUERN_CHECK(index < kTable.size());
  return kTable[index];
}

bool is_scale_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16;
}

std::uint16_t load_u16(const std::byte* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// `count` floats of any of the three types, to f32.
void floats_to_f32(const std::byte* in, DType dtype, std::int64_t count, float* out) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = f16_to_f32(load_u16(in + 2 * i));
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_to_f32(load_u16(in + 2 * i));
      return;
    default:
      QUERN_CHECK(false);
  }
}

/// Codes of `bits` bits, the first in the lowest bits of a little-endian stream, to bytes.
void unpack_codes(const std::byte* in, int bits, std::int64_t cols, std::uint8_t* codes) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  if (bits == 8) {
    std::memcpy(codes, bytes, static_cast<std::size_t>(cols));
    return;
  }
  if (bits == 4) {
    for (std::int64_t i = 0; i < cols / 2; ++i) {
      codes[2 * i] = bytes[i] & 0xf;
      codes[2 * i + 1] = static_cast<std::uint8_t>(bytes[i] >> 4);
    }
    return;
  }
  const std::uint32_t mask = (1U << bits) - 1U;
  std::uint32_t stream = 0;
  int held = 0;
  for (std::int64_t i = 0; i < cols; ++i) {
    if (held < bits) {
      stream |= static_cast<std::uint32_t>(*bytes++) << held;
      held += 8;
    }
    codes[i] = static_cast<std::uint8_t>(stream & mask);
    stream >>= bits;
    held -= bits;
  }
}

void decode_packed_row(const MatrixView& view, std::int64_t row, std::uint8_t* codes, float* scales, float* biases) {
  unpack_codes(view.data.data() + static_cast<std::size_t>(row) * view.row_bytes(), view.bits, view.cols, codes);
  const std::int64_t groups = view.cols / view.group;
  const auto first = static_cast<std::size_t>(row * groups) * dtype_bytes(view.scale_dtype);
  floats_to_f32(view.scales.data() + first, view.scale_dtype, groups, scales);
  floats_to_f32(view.biases.data() + first, view.scale_dtype, groups, biases);
}

/// An e2m1 value times two is an integer of [-12, 12]: 16 is added to make a code. The e8m0 scale is a power of two.
void decode_mxfp4_row(const MatrixView& view, std::int64_t row, std::uint8_t* codes, float* scales, float* biases) {
  constexpr std::array<std::uint8_t, 16> kCodes = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
  unpack_codes(view.data.data() + static_cast<std::size_t>(row) * view.row_bytes(), 4, view.cols, codes);
  for (std::int64_t c = 0; c < view.cols; ++c) codes[c] = kCodes[codes[c]];
  const std::int64_t groups = view.cols / 32;
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto exponent = std::to_integer<std::uint32_t>(view.scales[static_cast<std::size_t>(row * groups + g)]);
    // 2^(exponent - 128); the two smallest are subnormal f32, and the largest code means not a number.
    const std::uint32_t bits = exponent >= 2 ? (exponent - 1) << 23 : 1U << (21 + exponent);
    scales[g] = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : std::bit_cast<float>(bits);
    biases[g] = -16.0F * scales[g];
  }
}

Result<void> expect_bytes(std::string_view encoding, std::string_view what, std::size_t seen, std::int64_t rows,
                          std::size_t per_row) {
  if (per_row != 0 && static_cast<std::size_t>(rows) > std::numeric_limits<std::size_t>::max() / per_row) {
    return fail(ErrorCode::kInvalidFile, "{}: {} rows of {} bytes overflow", encoding, rows, per_row);
  }
  const std::size_t wanted = static_cast<std::size_t>(rows) * per_row;
  if (seen != wanted) {
    return fail(ErrorCode::kInvalidFile, "{}: {} has {} bytes, expected {}", encoding, what, seen, wanted);
  }
  return {};
}

Result<void> check_affine(const MatrixView& view) {
  const bool bits_known =
      view.bits == 2 || view.bits == 3 || view.bits == 4 || view.bits == 5 || view.bits == 6 || view.bits == 8;
  const bool group_known = view.group >= 16 && view.group <= 128 && view.group % 16 == 0;
  if (!bits_known || !group_known) {
    return fail(ErrorCode::kUnsupportedFormat,
                "affine: {} bits in groups of {}; expected 2, 3, 4, 5, 6 or 8 bits in "
                "groups of 16 to 128 that 16 divides",
                view.bits, view.group);
  }
  if (!is_scale_dtype(view.scale_dtype)) {
    return fail(ErrorCode::kUnsupportedFormat, "affine: scales of type {}; expected F32, F16 or BF16",
                dtype_name(view.scale_dtype));
  }
  if (view.cols % view.group != 0 || view.cols * view.bits % 32 != 0) {
    return fail(ErrorCode::kInvalidFile, "affine: {} columns of {} bits don't fill groups of {} and whole words",
                view.cols, view.bits, view.group);
  }
  return {};
}

}  // namespace

std::string_view encoding_name(Encoding encoding) {
  return row_of(encoding).name;
}

std::optional<Encoding> float_encoding(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Encoding::kF32;
    case DType::kF16:
      return Encoding::kF16;
    case DType::kBf16:
      return Encoding::kBf16;
    default:
      return std::nullopt;
  }
}

std::size_t MatrixView::row_bytes() const {
  if (encoding == Encoding::kAffine) return static_cast<std::size_t>(cols) * static_cast<std::size_t>(bits) / 8;
  const Row& row = row_of(encoding);
  return static_cast<std::size_t>(cols / row.block_cols) * static_cast<std::size_t>(row.block_bytes);
}

Result<void> check_matrix(const MatrixView& view) {
  const Row& row = row_of(view.encoding);
  constexpr std::int64_t kMostCols = std::int64_t{1} << 40;  // so that no product below overflows
  if (view.rows <= 0 || view.cols <= 0 || view.cols > kMostCols) {
    return fail(ErrorCode::kInvalidFile, "{}: impossible shape [{}, {}]", row.name, view.rows, view.cols);
  }
  if (view.encoding == Encoding::kAffine) QUERN_TRY(check_affine(view));
  if (view.cols % row.block_cols != 0) {
    return fail(ErrorCode::kInvalidFile, "{}: {} columns aren't a multiple of {}", row.name, view.cols, row.block_cols);
  }
  QUERN_TRY(expect_bytes(row.name, "data", view.data.size(), view.rows, view.row_bytes()));
  std::size_t scale_row = 0;
  std::size_t bias_row = 0;
  if (view.encoding == Encoding::kAffine) {
    scale_row = bias_row = static_cast<std::size_t>(view.cols / view.group) * dtype_bytes(view.scale_dtype);
  } else if (view.encoding == Encoding::kMxfp4) {
    scale_row = static_cast<std::size_t>(view.cols / 32);
  }
  QUERN_TRY(expect_bytes(row.name, "scales", view.scales.size(), view.rows, scale_row));
  return expect_bytes(row.name, "biases", view.biases.size(), view.rows, bias_row);
}

std::optional<AffineForm> affine_form(const MatrixView& view) {
  if (view.encoding == Encoding::kAffine) {
    return AffineForm{.bits = view.bits,
                      .group = view.group,
                      .f16_scales = view.scale_dtype == DType::kF16,
                      .bf16_scales = view.scale_dtype == DType::kBf16};
  }
  const AffineForm& form = row_of(view.encoding).form;
  if (form.bits == 0) return std::nullopt;
  return form;
}

void decode_affine_row(const MatrixView& view, std::int64_t row, std::uint8_t* codes, float* scales, float* biases) {
  if (view.encoding == Encoding::kAffine) return decode_packed_row(view, row, codes, scales, biases);
  if (view.encoding == Encoding::kMxfp4) return decode_mxfp4_row(view, row, codes, scales, biases);
  const auto* in =
      reinterpret_cast<const std::uint8_t*>(view.data.data()) + static_cast<std::size_t>(row) * view.row_bytes();
  const Row& info = row_of(view.encoding);
  const BlockDecoder decode = block_decoder(view.encoding);
  const std::int64_t groups_in_block = info.block_cols / info.form.group;
  for (std::int64_t block = 0; block < view.cols / info.block_cols; ++block) {
    decode(in, codes, scales, biases);
    in += info.block_bytes;
    codes += info.block_cols;
    scales += groups_in_block;
    biases += groups_in_block;
  }
}

void dequantize_row(const MatrixView& view, std::int64_t row, float* out) {
  const std::optional<AffineForm> form = affine_form(view);
  if (!form) {
    const DType dtype = view.encoding == Encoding::kF32   ? DType::kF32
                        : view.encoding == Encoding::kF16 ? DType::kF16
                                                          : DType::kBf16;
    floats_to_f32(view.data.data() + static_cast<std::size_t>(row) * view.row_bytes(), dtype, view.cols, out);
    return;
  }
  const std::int64_t groups = view.cols / form->group;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(view.cols));
  std::vector<float> scales(static_cast<std::size_t>(groups));
  std::vector<float> biases(static_cast<std::size_t>(groups));
  decode_affine_row(view, row, codes.data(), scales.data(), biases.data());
  for (std::int64_t c = 0; c < view.cols; ++c) {
    const auto g = static_cast<std::size_t>(c / form->group);
    out[c] = scales[g] * static_cast<float>(codes[static_cast<std::size_t>(c)]) + biases[g];
  }
}

}  // namespace quern::tensor
