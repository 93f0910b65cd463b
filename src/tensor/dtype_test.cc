// The 16-bit floats: every f16 goes to f32 and back, rounding is to nearest even; names and sizes.
#include "quern/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quern::tensor {
namespace {

TEST(DType, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("F8_E4M3"), std::nullopt);
  EXPECT_EQ(dtype_bytes(DType::kBf16), 2U);
}

TEST(DType, EveryF16SurvivesTheWayToF32AndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), half);
    }
  }
}

TEST(DType, F16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-11F), 0x3c00) << "a tie goes to the even one below";
  EXPECT_EQ(f32_to_f16(1.0F + 3 * 0x1p-11F), 0x3c02) << "and to the even one above";
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(f32_to_f16(-0x1.8p-25F), 0x8001);
}

TEST(DType, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0F + 3 * 0x1p-8F), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace quern::tensor
