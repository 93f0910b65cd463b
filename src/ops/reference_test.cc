// The reference against numbers that are worked out by hand.
#include "quern/ops/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace quern::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;

Mat mat(std::vector<float>& values, std::int64_t rows) {
  const auto cols = static_cast<std::int64_t>(values.size()) / rows;
  return {.data = values.data(), .rows = rows, .cols = cols, .stride = cols};
}

tensor::MatrixView view(const std::vector<float>& values, std::int64_t rows) {
  return {
      .rows = rows, .cols = static_cast<std::int64_t>(values.size()) / rows, .data = std::as_bytes(std::span(values))};
}

std::unique_ptr<Weight> pack(Device& device, std::vector<WeightPart> parts) {
  auto weight = device.pack(parts);
  EXPECT_TRUE(weight) << weight.error().message;
  return std::move(weight).value();
}

/// KV pages of one layer, filled with NaN so that a read of what nobody stored shows.
struct Pages {
  std::vector<float> keys, values;
  KvLayer layer;
  Pages(int pages, int kv_heads, int head_dim)
      : keys(static_cast<std::size_t>(pages * kv_heads * kPageTokens * head_dim),
             std::numeric_limits<float>::quiet_NaN()),
        values(keys) {
    layer = {.keys = reinterpret_cast<std::byte*>(keys.data()),
             .values = reinterpret_cast<std::byte*>(values.data()),
             .dtype = tensor::DType::kF32,
             .pages = pages,
             .kv_heads = kv_heads,
             .head_dim = head_dim};
  }
};

TEST(Reference, LinearIsXTimesWTransposed) {
  const auto device = make_reference_device();
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};  // [2, 3]
  const auto weight = pack(*device, {{.view = view(w, 2)}});
  EXPECT_EQ(weight->rows(), 2);
  EXPECT_EQ(weight->cols(), 3);
  std::vector<float> x = {1, 0, -1, 2, 1, 0};
  std::vector<float> y(4, 100.0F);
  device->linear(*weight, mat(x, 2), mat(y, 2), {});
  EXPECT_THAT(y, ElementsAre(-2, -2, 4, 13));
  const std::array<float, 2> bias = {10, 20};
  device->linear(*weight, mat(x, 2), mat(y, 2), {.bias = bias, .scale = 0.5F, .accumulate = true});
  EXPECT_THAT(y, ElementsAre(-2 + 4, -2 + 9, 4 + 7, 13 + 16.5F));
}

TEST(Reference, PartsStackAndRowsAreReordered) {
  const auto device = make_reference_device();
  const std::vector<float> a = {1, 2, 3};  // [3, 1]
  const std::vector<float> b = {4, 5};
  const std::array<std::int32_t, 3> order = {2, 0, 1};
  const auto weight = pack(*device, {{.view = view(a, 3), .row_order = order}, {.view = view(b, 2), .row_order = {}}});
  std::vector<float> x = {1};
  std::vector<float> y(5);
  device->linear(*weight, mat(x, 1), mat(y, 1), {});
  EXPECT_THAT(y, ElementsAre(3, 1, 2, 4, 5));
}

TEST(Reference, PartsOfDifferentWidthAreAnError) {
  const std::vector<float> a(4);
  const std::vector<WeightPart> parts = {{.view = view(a, 1), .row_order = {}}, {.view = view(a, 2), .row_order = {}}};
  const auto weight = make_reference_device()->pack(parts);
  ASSERT_FALSE(weight);
  EXPECT_EQ(weight.error().code, ErrorCode::kInvalidFile);
}

TEST(Reference, EmbedTakesRows) {
  const auto device = make_reference_device();
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const auto table = pack(*device, {{.view = view(w, 3)}});
  const std::array<std::int32_t, 2> ids = {2, 0};
  std::vector<float> out(4);
  device->embed(*table, ids, 2.0F, mat(out, 2));
  EXPECT_THAT(out, ElementsAre(10, 12, 2, 4));
}

TEST(Reference, RmsNormDividesByTheRootOfTheMeanSquare) {
  const auto device = make_reference_device();
  std::vector<float> x = {3, 4, 0, 0};
  const std::array<float, 4> weight = {1, 2, 3, 4};
  device->rms_norm(mat(x, 1), weight, 0.0F, mat(x, 1));
  EXPECT_THAT(x, ElementsAre(FloatEq(1.2F), FloatEq(3.2F), 0, 0)) << "the mean square is 6.25";
}

TEST(Reference, GatedActivations) {
  const auto device = make_reference_device();
  std::vector<float> up = {2, 2, 2};
  std::vector<float> out(3);
  std::vector<float> gate = {0, std::numbers::ln2_v<float>, -100};
  device->gated(Activation::kSilu, mat(gate, 1), mat(up, 1), mat(out, 1));
  EXPECT_THAT(out, ElementsAre(0, FloatEq(2 * std::numbers::ln2_v<float> / 1.5F), FloatNear(0, 1e-30F)));
  gate = {0, 1, -1};
  device->gated(Activation::kGelu, mat(gate, 1), mat(up, 1), mat(out, 1));
  EXPECT_THAT(out, ElementsAre(0, FloatNear(2 * 0.8413447F, 1e-6F), FloatNear(-2 * 0.1586553F, 1e-6F)));
  device->gated(Activation::kGeluTanh, mat(gate, 1), mat(up, 1), mat(out, 1));
  EXPECT_THAT(out, ElementsAre(0, FloatNear(2 * 0.841192F, 1e-5F), FloatNear(-2 * 0.158808F, 1e-5F)));
}

TEST(Reference, RopeTurnsPairsByTheirAngle) {
  const auto device = make_reference_device();
  const std::array<float, 2> frequency = {std::numbers::pi_v<float> / 2, 0.0F};
  const std::array<std::int32_t, 1> tokens = {0};
  const std::array<std::int32_t, 1> pages = {0};
  const BatchRow row{.first_token = 0, .tokens = 1, .first_position = 1, .pages = pages};
  const Batch batch{.tokens = tokens, .rows = {&row, 1}, .outputs = {}};
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 5, .scale = 1.0F};
  for (const auto pairing : {Rope::Pairing::kHalves, Rope::Pairing::kAdjacent}) {
    Pages pages_of_layer(1, 1, 5);
    std::vector<float> q = {1, 2, 3, 4, 5};
    std::vector<float> k = {1, 2, 3, 4, 5};
    std::vector<float> v = {6, 7, 8, 9, 10};
    device->rope_store(batch, {.inverse_frequency = frequency, .magnitude = 2.0F, .pairing = pairing}, shape, mat(q, 1),
                       mat(k, 1), mat(v, 1), pages_of_layer.layer);
    // A quarter turn of the first pair, none of the second, both times two; the fifth element isn't rotated.
    if (pairing == Rope::Pairing::kHalves) {
      EXPECT_THAT(q, ElementsAre(FloatNear(-6, 1e-5F), 4, FloatNear(2, 1e-5F), 8, 5));
    } else {
      EXPECT_THAT(q, ElementsAre(FloatNear(-4, 1e-5F), FloatNear(2, 1e-5F), 6, 8, 5));
    }
    EXPECT_THAT(std::span(pages_of_layer.keys).subspan(5, 5), testing::ElementsAreArray(q)) << "position 1";
    EXPECT_THAT(std::span(pages_of_layer.values).subspan(5, 5), ElementsAre(6, 7, 8, 9, 10));
    EXPECT_TRUE(std::isnan(pages_of_layer.keys[0]) && std::isnan(pages_of_layer.keys[10])) << "nothing else is touched";
  }
}

/// Two query heads share a KV head of one dimension; keys are ln 1, ln 2, ln 3 and values 1, 10, 100.
struct AttentionCase {
  std::vector<float> q = {1, 0, 1, 0, 1, 0};  // [3, 2 heads]
  std::vector<float> k = {0, std::log(2.0F), std::log(3.0F)};
  std::vector<float> v = {1, 10, 100};
  std::vector<float> out = std::vector<float>(6);
  std::array<std::int32_t, 3> tokens = {};
  std::array<std::int32_t, 1> pages = {1};
  BatchRow row{.first_token = 0, .tokens = 3, .first_position = 0, .pages = pages};
  Batch batch{.tokens = tokens, .rows = {&row, 1}, .outputs = {}};
  Pages layer{2, 1, 1};

  void run(const AttentionShape& shape) {
    const auto device = make_reference_device();
    device->rope_store(batch, {}, shape, mat(q, 3), mat(k, 3), mat(v, 3), layer.layer);
    device->attention(batch, shape, mat(q, 3), layer.layer, mat(out, 3));
  }
};

TEST(Reference, AttentionWeighsByTheExponentialOfTheScore) {
  AttentionCase c;
  c.run({.heads = 2, .kv_heads = 1, .head_dim = 1, .scale = 1.0F});
  EXPECT_THAT(c.out, ElementsAre(1, 1, FloatEq(21.0F / 3), FloatEq(5.5F), FloatEq(321.0F / 6), FloatEq(37)));
}

TEST(Reference, WindowKeepsTheLastKeys) {
  AttentionCase c;
  c.run({.heads = 2, .kv_heads = 1, .head_dim = 1, .scale = 1.0F, .window = 2});
  EXPECT_THAT(c.out, ElementsAre(1, 1, FloatEq(21.0F / 3), FloatEq(5.5F), FloatEq(320.0F / 5), FloatEq(55)));
}

TEST(Reference, SoftcapBoundsTheScore) {
  AttentionCase c;
  c.run({.heads = 2, .kv_heads = 1, .head_dim = 1, .scale = 1e6F, .softcap = std::numbers::ln2_v<float>});
  // Scores become 0, ln 2 and ln 2.
  EXPECT_THAT(c.out, ElementsAre(1, 1, FloatEq(21.0F / 3), FloatEq(5.5F), FloatEq(221.0F / 5), FloatEq(37)));
}

TEST(ReferenceDeath, WrongShapesAreOurBugs) {
  const auto device = make_reference_device();
  std::vector<float> x(6);
  std::vector<float> y(4);
  const std::array<float, 3> weight = {};
  EXPECT_DEATH(device->gated(Activation::kSilu, mat(x, 2), mat(y, 2), mat(x, 2)), "check failed");
  EXPECT_DEATH(device->rms_norm(mat(y, 2), weight, 0.0F, mat(y, 2)), "check failed");
  AttentionCase c;
  c.layer.layer.pages = 1;  // the row uses page 1
  EXPECT_DEATH(c.run({.heads = 2, .kv_heads = 1, .head_dim = 1}), "check failed");
}

}  // namespace
}  // namespace quern::ops
