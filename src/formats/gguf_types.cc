// The tables of GGUF's type numbers.
#include "quern/formats/gguf_types.h"

#include <fmt/format.h>

#include <array>

#include "quern/formats/byte_reader.h"

namespace quern::formats {
namespace {

using Element = GgufArray::Element;
using tensor::Encoding;

constexpr std::array kValueTypes = {
    GgufValueType{"u8", Element::kUnsigned, 1},   GgufValueType{"i8", Element::kSigned, 1},
    GgufValueType{"u16", Element::kUnsigned, 2},  GgufValueType{"i16", Element::kSigned, 2},
    GgufValueType{"u32", Element::kUnsigned, 4},  GgufValueType{"i32", Element::kSigned, 4},
    GgufValueType{"f32", Element::kFloat, 4},     GgufValueType{"bool", Element::kBool, 1},
    GgufValueType{"string", Element::kString, 8}, GgufValueType{"array", Element::kArray, 12},
    GgufValueType{"u64", Element::kUnsigned, 8},  GgufValueType{"i64", Element::kSigned, 8},
    GgufValueType{"f64", Element::kFloat, 8},
};

constexpr std::array kWeightTypes = {
    GgufWeightType{0, Encoding::kF32, 1, 4},      GgufWeightType{1, Encoding::kF16, 1, 2},
    GgufWeightType{2, Encoding::kQ4_0, 32, 18},   GgufWeightType{3, Encoding::kQ4_1, 32, 20},
    GgufWeightType{6, Encoding::kQ5_0, 32, 22},   GgufWeightType{7, Encoding::kQ5_1, 32, 24},
    GgufWeightType{8, Encoding::kQ8_0, 32, 34},   GgufWeightType{10, Encoding::kQ2K, 256, 84},
    GgufWeightType{11, Encoding::kQ3K, 256, 110}, GgufWeightType{12, Encoding::kQ4K, 256, 144},
    GgufWeightType{13, Encoding::kQ5K, 256, 176}, GgufWeightType{14, Encoding::kQ6K, 256, 210},
    GgufWeightType{30, Encoding::kBf16, 1, 2},
};

// By number. Some were taken out of the format again; files with them still go around.
constexpr std::array<std::string_view, 41> kWeightNames = {
    "F32",        "F16",        "Q4_0",       "Q4_1",  "Q4_2",     "Q4_3",     "Q5_0",     "Q5_1",    "Q8_0",
    "Q8_1",       "Q2_K",       "Q3_K",       "Q4_K",  "Q5_K",     "Q6_K",     "Q8_K",     "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS",    "IQ1_S",      "IQ4_NL",     "IQ3_S", "IQ2_S",    "IQ4_XS",   "I8",       "I16",     "I32",
    "I64",        "F64",        "IQ1_M",      "BF16",  "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4"};

}  // namespace

const GgufValueType* gguf_value_type(std::uint32_t number) {
  return number < kValueTypes.size() ? &kValueTypes[number] : nullptr;
}

std::uint64_t gguf_unsigned(const GgufValueType& type, const std::byte* at) {
  switch (type.min_bytes) {
    case 1:
      return load<std::uint8_t>(at);
    case 2:
      return load<std::uint16_t>(at);
    case 4:
      return load<std::uint32_t>(at);
    default:
      return load<std::uint64_t>(at);
  }
}

std::int64_t gguf_signed(const GgufValueType& type, const std::byte* at) {
  switch (type.min_bytes) {
    case 1:
      return load<std::int8_t>(at);
    case 2:
      return load<std::int16_t>(at);
    case 4:
      return load<std::int32_t>(at);
    default:
      return load<std::int64_t>(at);
  }
}

double gguf_float(const GgufValueType& type, const std::byte* at) {
  return type.min_bytes == 4 ? static_cast<double>(load<float>(at)) : load<double>(at);
}

const GgufWeightType* gguf_weight_type(std::uint32_t number) {
  for (const GgufWeightType& type : kWeightTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::string gguf_type_name(std::uint32_t number) {
  return number < kWeightNames.size() ? std::string(kWeightNames[number]) : fmt::format("number {}", number);
}

}  // namespace quern::formats
