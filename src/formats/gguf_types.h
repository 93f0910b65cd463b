// GGUF's own type numbers: of metadata values and of weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "quern/formats/gguf.h"
#include "quern/tensor/encoding.h"

namespace quern::formats {

struct GgufValueType {
  std::string_view name;
  GgufArray::Element element;
  std::size_t min_bytes;  // exact for scalars; of an empty string or array otherwise
};
/// Null for an unknown number.
[[nodiscard]] const GgufValueType* gguf_value_type(std::uint32_t number);

/// Scalars of a type's kind and width. `at` may be unaligned.
[[nodiscard]] std::uint64_t gguf_unsigned(const GgufValueType& type, const std::byte* at);
[[nodiscard]] std::int64_t gguf_signed(const GgufValueType& type, const std::byte* at);
[[nodiscard]] double gguf_float(const GgufValueType& type, const std::byte* at);

struct GgufWeightType {
  std::uint32_t number;
  tensor::Encoding encoding;
  std::int64_t block;         // elements
  std::uint64_t block_bytes;  // bytes that they take
};
/// Null for a type that we don't read.
[[nodiscard]] const GgufWeightType* gguf_weight_type(std::uint32_t number);
/// Every type's name, read by us or not; "number N" for an unknown one.
[[nodiscard]] std::string gguf_type_name(std::uint32_t number);

}  // namespace quern::formats
