// weight_matrix(): the values come out as they were packed, and what contradicts is refused by name.
#include "quern/formats/weight_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/safetensors.h"

namespace quern::formats {
namespace {

using test::TensorBytes;
using ::testing::EndsWith;

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kCols = 192;
constexpr std::int64_t kGroup = 64;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::uint32_t code(std::int64_t row, std::int64_t col, int bits) {
  return static_cast<std::uint32_t>(row * 31 + col * 7 + 3) % (1U << bits);
}

// Codes of `bits` one after the other from the lowest bit on, in words of 32.
std::string packed(int bits) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(kRows * kCols * bits / 32));
  std::size_t at = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t col = 0; col < kCols; ++col) {
      for (int bit = 0; bit < bits; ++bit, ++at) words[at / 32] |= (code(row, col, bits) >> bit & 1U) << (at % 32);
    }
  }
  return bytes_of(words);
}

// "m" as MLX writes it: scales 0.5, 1, 1.5 ..., biases their negatives.
std::vector<TensorBytes> module(int bits) {
  std::vector<float> scales;
  std::vector<float> biases;
  for (std::int64_t i = 0; i < kRows * kCols / kGroup; ++i) {
    scales.push_back(0.5F * static_cast<float>(i + 1));
    biases.push_back(-scales.back());
  }
  return {{"m.weight", "U32", {kRows, kCols * bits / 32}, packed(bits)},
          {"m.scales", "F32", {kRows, kCols / kGroup}, bytes_of(scales)},
          {"m.biases", "F32", {kRows, kCols / kGroup}, bytes_of(biases)}};
}

HfQuantization quantization(std::int64_t bits, std::int64_t group = kGroup, std::string mode = "affine") {
  return {.defaults = {.bits = bits, .group = group, .mode = std::move(mode)}, .modules = {}};
}

class WeightMatrix : public ::testing::Test {
 protected:
  Result<tensor::MatrixView> matrix(const std::vector<TensorBytes>& tensors,
                                    const std::optional<HfQuantization>& quantized) {
    bytes_ = test::safetensors(tensors);
    auto parsed = SafeTensors::parse(std::as_bytes(std::span(bytes_)), "file");
    if (!parsed) return fail(parsed.error());
    file_ = *std::move(parsed);
    return weight_matrix(file_, "m", quantized);
  }
  std::string error(const std::vector<TensorBytes>& tensors, const std::optional<HfQuantization>& quantized) {
    const auto result = matrix(tensors, quantized);
    return result ? "none" : result.error().message;
  }

  std::string bytes_;
  SafeTensors file_;
};

TEST_F(WeightMatrix, AffineGroupsOfEveryWidth) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const auto view = matrix(module(bits), quantization(bits));
    ASSERT_TRUE(view) << view.error().message;
    ASSERT_EQ(view->cols, kCols);
    ASSERT_EQ(view->rows, kRows);
    std::vector<float> row(kCols);
    for (std::int64_t r = 0; r < kRows; ++r) {
      tensor::dequantize_row(*view, r, row.data());
      for (std::int64_t c = 0; c < kCols; ++c) {
        const float scale = 0.5F * static_cast<float>(r * (kCols / kGroup) + c / kGroup + 1);
        ASSERT_EQ(row[static_cast<std::size_t>(c)], scale * static_cast<float>(code(r, c, bits)) - scale) << bits;
      }
    }
  }
}

TEST_F(WeightMatrix, AModuleMayHaveItsOwnWidth) {
  HfQuantization mixed = quantization(4);
  mixed.modules["m"] = {.bits = 6, .group = kGroup, .mode = "affine"};
  const auto view = matrix(module(6), mixed);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->bits, 6);
  mixed.modules["m"] = {};
  EXPECT_THAT(error(module(6), mixed),
              EndsWith("'m.scales' at byte 86: config.json says that this module isn't quantized"));
}

TEST_F(WeightMatrix, Mxfp4HasByteScalesAndNoBiases) {
  std::vector<TensorBytes> tensors = {{"m.weight", "U32", {1, 8}, std::string(32, '\x21')},
                                      {"m.scales", "U8", {1, 2}, "\x7f\x80"}};
  const auto view = matrix(tensors, quantization(4, 32, "mxfp4"));
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->encoding, tensor::Encoding::kMxfp4);
  std::vector<float> row(64);
  tensor::dequantize_row(*view, 0, row.data());
  EXPECT_EQ(row[0], 0.5F) << "code 1";
  EXPECT_EQ(row[1], 1.0F) << "code 2";
  EXPECT_EQ(row[32], 1.0F) << "a scale of 2";
  tensors.push_back({"m.biases", "U8", {1, 2}, "ab"});
  EXPECT_THAT(error(tensors, quantization(4, 32, "mxfp4")), EndsWith("mxfp4 has no biases"));
  tensors.pop_back();
  tensors[1].dtype = "I8";
  EXPECT_THAT(error(tensors, quantization(4, 32, "mxfp4")), EndsWith("dtype I8, but mxfp4 has U8 scales"));
}

TEST_F(WeightMatrix, PlainFloats) {
  for (const char* const dtype : {"F16", "BF16"}) {
    const auto view = matrix({{"m.weight", dtype, {2, 2, 3}, std::string(24, 'x')}}, quantization(4));
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(view->rows, 4);
    EXPECT_EQ(view->cols, 3);
  }
  EXPECT_EQ(matrix({{"m.weight", "F32", {3}, std::string(12, 'x')}}, std::nullopt)->rows, 1);
  EXPECT_EQ(error({{"m.weight", "F64", {1}, std::string(8, 'x')}}, std::nullopt),
            "file: 'm.weight' at byte 20: a weight of dtype F64");
  EXPECT_THAT(error({{"m.weight", "F32", {}, "abcd"}}, std::nullopt), EndsWith("a scalar, expected rows and columns"));
  EXPECT_THAT(error({{"m.weight", "F32", {2, 0}, ""}}, std::nullopt), EndsWith("dimension 1 is 0"));
  EXPECT_EQ(error({}, std::nullopt), "file: there is no tensor 'm.weight'");
}

TEST_F(WeightMatrix, WhatContradictsIsRefused) {
  // What is changed of a good 4-bit module, and the end of the message.
  struct Case {
    std::size_t tensor;
    TensorBytes replacement;
    std::string message;
  };
  const std::int64_t words = kCols * 4 / 32;
  const Case cases[] = {
      {0, {"m.weight", "I32", {kRows, words}, packed(4)}, "dtype I32, but quantized weights are U32"},
      {0, {"m.weight", "U32", {kRows, 23}, std::string(276, 'x')}, "groups of 64 don't divide 184 columns"},
      {0, {"m.weight", "U32", {2, words}, std::string(192, 'x')}, "shape [3, 3], expected [2, 3]"},
      {1, {"m.scales", "F32", {kRows, 2}, std::string(24, 'x')}, "shape [3, 2], expected [3, 3]"},
      {1, {"m.scales", "F32", {9}, std::string(36, 'x')}, "shape [9], expected [3, 3]"},
      {1, {"m.scales", "I16", {3, 3}, std::string(18, 'x')}, "dtype I16, expected F32, F16 or BF16"},
      {2, {"m.biases", "F32", {3, 1}, std::string(12, 'x')}, "shape [3, 1], expected [3, 3]"},
      {2, {"m.biases", "F16", {3, 3}, std::string(18, 'x')}, "dtype F16, but the scales are F32"},
      {2, {"m.other", "F16", {3, 3}, std::string(18, 'x')}, "there is no tensor 'm.biases'"},
  };
  for (const Case& one : cases) {
    auto tensors = module(4);
    tensors[one.tensor] = one.replacement;
    EXPECT_THAT(error(tensors, quantization(4)), EndsWith(one.message));
  }
  EXPECT_THAT(error(module(4), std::nullopt), EndsWith("a quantized module, but config.json has no quantization"));
  EXPECT_THAT(error(module(4), quantization(5)), EndsWith("rows of 24 words don't hold whole codes of 5 bits"));
  EXPECT_THAT(error(module(4), quantization(4, 128)), EndsWith("groups of 128 don't divide 192 columns"));
}

}  // namespace
}  // namespace quern::formats
