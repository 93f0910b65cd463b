// Every encoding against the values that the reference packages give (fixtures/cases/encoding), and what is refused.
#include "quern/tensor/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quern::tensor {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

Encoding encoding_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Encoding::kMxfp4); ++i) {
    if (encoding_name(static_cast<Encoding>(i)) == name) return static_cast<Encoding>(i);
  }
  ADD_FAILURE() << "no encoding is called " << name;
  return Encoding::kF32;
}

struct Case {
  std::string name;
  MatrixView view;
  std::vector<std::byte> data, scales, biases;
  std::vector<float> expected;
};

Case read_case(const std::filesystem::path& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  Case c;
  c.name = path.stem().string();
  c.data = from_hex(json["data"]);
  c.scales = from_hex(json.value("scales", ""));
  c.biases = from_hex(json.value("biases", ""));
  const auto expected = from_hex(json["expected"]);
  c.expected.resize(expected.size() / sizeof(float));
  std::memcpy(c.expected.data(), expected.data(), expected.size());
  c.view = {.encoding = encoding_from_name(json["encoding"].get<std::string>()),
            .rows = json["rows"],
            .cols = json["cols"],
            .data = c.data,
            .bits = json.value("bits", 0),
            .group = json.value("group", 0),
            .scale_dtype = dtype_from_name(json.value("scale_dtype", "F32")).value(),
            .scales = c.scales,
            .biases = c.biases};
  return c;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_FIXTURES "/cases/encoding")) {
    cases.push_back(read_case(entry.path()));  // moving a vector leaves its elements where they are
  }
  return cases;
}

TEST(Encoding, EachHasACase) {
  std::array<int, static_cast<int>(Encoding::kMxfp4) + 1> seen{};
  for (const Case& c : all_cases()) ++seen[static_cast<std::size_t>(c.view.encoding)];
  EXPECT_THAT(seen, testing::Each(testing::Gt(0)));
  EXPECT_GE(seen[static_cast<std::size_t>(Encoding::kAffine)], 18) << "each width and scale type";
}

TEST(Encoding, DequantizesToTheReferenceValueExactly) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    const auto checked = check_matrix(c.view);
    ASSERT_TRUE(checked) << checked.error().message;
    std::vector<float> row(static_cast<std::size_t>(c.view.cols));
    for (std::int64_t r = 0; r < c.view.rows; ++r) {
      dequantize_row(c.view, r, row.data());
      for (std::size_t i = 0; i < row.size(); ++i) {
        ASSERT_EQ(row[i], c.expected[static_cast<std::size_t>(r * c.view.cols) + i]) << "row " << r << " column " << i;
      }
    }
  }
}

TEST(Encoding, FormTellsTheTruthAboutCodesAndScales) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    const auto form = affine_form(c.view);
    if (!form) continue;
    const auto groups = static_cast<std::size_t>(c.view.cols / form->group);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(c.view.cols));
    std::vector<float> scales(groups);
    std::vector<float> biases(groups);
    for (std::int64_t r = 0; r < c.view.rows; ++r) {
      decode_affine_row(c.view, r, codes.data(), scales.data(), biases.data());
      EXPECT_THAT(codes, testing::Each(testing::Lt(1 << form->bits)));
      for (std::size_t g = 0; g < groups; ++g) {
        if (form->symmetric) {
          EXPECT_EQ(biases[g], -std::ldexp(scales[g], form->bits - 1));
        }
        if (form->f16_scales) {
          EXPECT_EQ(f16_to_f32(f32_to_f16(scales[g])), scales[g]);
        }
        if (form->bf16_scales) {
          EXPECT_EQ(bf16_to_f32(f32_to_bf16(scales[g])), scales[g]);
        }
        if (form->f16_scales && !form->symmetric) {
          EXPECT_EQ(f16_to_f32(f32_to_f16(biases[g])), biases[g]);
        }
        if (form->bf16_scales && !form->symmetric) {
          EXPECT_EQ(bf16_to_f32(f32_to_bf16(biases[g])), biases[g]);
        }
      }
    }
  }
}

TEST(Encoding, Mxfp4ScalesAtTheEnds) {
  std::vector<std::byte> data(16, std::byte{0x22});  // every code is 1.0
  for (const auto& [exponent, value] : {std::pair{0, 0x1p-127F}, {1, 0x1p-126F}, {2, 0x1p-125F}, {127, 1.0F}}) {
    const std::array<std::byte, 1> scale = {static_cast<std::byte>(exponent)};
    const MatrixView view{.encoding = Encoding::kMxfp4, .rows = 1, .cols = 32, .data = data, .scales = scale};
    std::array<float, 32> row{};
    dequantize_row(view, 0, row.data());
    EXPECT_THAT(row, testing::Each(value)) << exponent;
  }
}

struct Refusal {
  const char* why;
  MatrixView view;
  ErrorCode code;
};

TEST(CheckMatrix, RefusesWhatDoesNotFit) {
  const std::vector<std::byte> bytes(4096);
  const auto first = [&](std::size_t count) { return std::span(bytes).first(count); };
  const MatrixView affine{.encoding = Encoding::kAffine,
                          .rows = 2,
                          .cols = 64,
                          .data = first(64),
                          .bits = 4,
                          .group = 32,
                          .scale_dtype = DType::kF16,
                          .scales = first(8),
                          .biases = first(8)};
  ASSERT_TRUE(check_matrix(affine));
  const auto with = [&](auto change) {
    MatrixView view = affine;
    change(view);
    return view;
  };
  const std::vector<Refusal> refusals = {
      {"no rows", {.rows = 0, .cols = 4}, ErrorCode::kInvalidFile},
      {"negative columns", {.rows = 1, .cols = -4}, ErrorCode::kInvalidFile},
      {"overflow", {.rows = std::int64_t{1} << 62, .cols = std::int64_t{1} << 40}, ErrorCode::kInvalidFile},
      {"short", {.rows = 2, .cols = 4, .data = first(31)}, ErrorCode::kInvalidFile},
      {"long", {.rows = 2, .cols = 4, .data = first(33)}, ErrorCode::kInvalidFile},
      {"part of a block",
       {.encoding = Encoding::kQ4K, .rows = 1, .cols = 128, .data = first(72)},
       ErrorCode::kInvalidFile},
      {"scales of a float", {.rows = 1, .cols = 1, .data = first(4), .scales = first(2)}, ErrorCode::kInvalidFile},
      {"mxfp4 biases",
       {.encoding = Encoding::kMxfp4, .rows = 1, .cols = 32, .data = first(16), .scales = first(1), .biases = first(1)},
       ErrorCode::kInvalidFile},
      {"7 bits", with([](MatrixView& v) { v.bits = 7; }), ErrorCode::kUnsupportedFormat},
      {"group of 8", with([](MatrixView& v) { v.group = 8; }), ErrorCode::kUnsupportedFormat},
      {"group of 256", with([](MatrixView& v) { v.group = 256; }), ErrorCode::kUnsupportedFormat},
      {"integer scales", with([](MatrixView& v) { v.scale_dtype = DType::kI16; }), ErrorCode::kUnsupportedFormat},
      {"group that doesn't divide", with([](MatrixView& v) { v.group = 48; }), ErrorCode::kInvalidFile},
      {"short biases", with([&](MatrixView& v) { v.biases = first(7); }), ErrorCode::kInvalidFile},
      {"no scales", with([](MatrixView& v) { v.scales = {}; }), ErrorCode::kInvalidFile},
  };
  for (const Refusal& refusal : refusals) {
    const auto result = check_matrix(refusal.view);
    ASSERT_FALSE(result) << refusal.why;
    EXPECT_EQ(result.error().code, refusal.code) << refusal.why << ": " << result.error().message;
  }
}

}  // namespace
}  // namespace quern::tensor
