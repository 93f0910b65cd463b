// A module's weight in safetensors, plain or quantized by MLX, as a matrix.
#pragma once

#include <optional>
#include <string_view>

#include "quern/base/result.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"
#include "quern/tensor/encoding.h"

namespace quern::formats {

/// `<module>.weight` [..., rows, cols], leading dimensions folded into rows; a 1-D one is one row. F32, F16 and BF16
/// are taken as they are. With `<module>.scales` beside it the weight is quantized: U32 words [..., rows, cols * bits /
/// 32] of codes, least significant bits first; its bits, group and mode stand in `quantization`. Affine: scales and
/// biases
/// [..., rows, cols / group], both of one float type. mxfp4: U8 scales [..., rows, cols / 32], no biases.
/// kInvalidFile with file, tensor and offset for what is missing or contradicts; kUnsupportedFormat names another
/// dtype. The view lives as long as `tensors`; its bytes may lie at any address.
[[nodiscard]] Result<tensor::MatrixView> weight_matrix(const SafeTensors& tensors, std::string_view module,
                                                       const std::optional<HfQuantization>& quantization);

}  // namespace quern::formats
