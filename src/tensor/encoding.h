// How files encode weight matrices, and the one form that all quantized ones share: affine groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "quern/base/result.h"
#include "quern/tensor/dtype.h"

namespace quern::tensor {

/// Encoding of a weight matrix as it lies in a file.
enum class Encoding : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ4_0,  // GGUF blocks of 32 ...
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2K,  // ... and of 256
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kAffine,  // MLX: packed u32 codes, one scale and bias a group, in tensors of their own
  kMxfp4,   // e2m1 codes packed in u32, one e8m0 scale for 32; its codes here are 2 * value + 16
};

[[nodiscard]] std::string_view encoding_name(Encoding encoding);
/// The plain encoding of an element type; nothing for those that weights aren't stored in.
[[nodiscard]] std::optional<Encoding> float_encoding(DType dtype);

/// A weight matrix [rows, cols], row-major, in a file's bytes. Borrows them; they were bounds-checked by the parser.
struct MatrixView {
  Encoding encoding = Encoding::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const std::byte> data = {};    // floats, GGUF blocks or packed codes; rows * row_bytes()
  int bits = 0;                            // kAffine: 2, 3, 4, 5, 6 or 8
  int group = 0;                           // kAffine: 16 to 128 columns
  DType scale_dtype = DType::kF32;         // kAffine: of scales and biases
  std::span<const std::byte> scales = {};  // kAffine: [rows, cols / group]; kMxfp4: u8 [rows, cols / 32]
  std::span<const std::byte> biases = {};  // kAffine: as scales

  /// Bytes of one row of `data`.
  [[nodiscard]] std::size_t row_bytes() const;
};

/// Checks that the shape is one that the encoding can have and that each span has exactly the bytes that follow.
[[nodiscard]] Result<void> check_matrix(const MatrixView& view);

/// The canonical quantized form: w[r, c] = scale[r, c / group] * code[r, c] + bias[r, c / group], with unsigned codes
/// below 2^bits. Every quantized encoding maps onto it without loss (K-quants' two scale levels multiply exactly in
/// f32).
struct AffineForm {
  int bits = 0;
  int group = 0;
  /// Every bias is -2^(bits - 1) times its scale (Q4_0, Q5_0, Q8_0, Q3_K, Q6_K): codes are signed at heart.
  bool symmetric = false;
  /// Every scale and bias is exactly an f16 (bf16), so that two bytes keep it.
  bool f16_scales = false;
  bool bf16_scales = false;
};

/// Nothing for the plain floats.
[[nodiscard]] std::optional<AffineForm> affine_form(const MatrixView& view);

/// Decodes one row of a quantized view: `codes` [cols], `scales` and `biases` [cols / group].
void decode_affine_row(const MatrixView& view, std::int64_t row, std::uint8_t* codes, float* scales, float* biases);

/// Any encoding to f32: what the reference computes with. `out` [cols].
void dequantize_row(const MatrixView& view, std::int64_t row, float* out);

}  // namespace quern::tensor
