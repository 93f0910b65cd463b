// Decoders of GGUF's quantized blocks into unsigned codes with a scale and a bias a group.
#pragma once

#include <cstdint>

#include "quern/tensor/encoding.h"

namespace quern::tensor {

/// Decodes one block: `codes` one a column, `scales` and `biases` one a group, as affine_form() tells the sizes.
using BlockDecoder = void (*)(const std::uint8_t* block, std::uint8_t* codes, float* scales, float* biases);

/// For kQ4_0 to kQ6K.
[[nodiscard]] BlockDecoder block_decoder(Encoding encoding);

}  // namespace quern::tensor
