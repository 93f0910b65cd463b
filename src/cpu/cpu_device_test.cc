// Every ISA against the scalar reference by one table of bounds, and bit equality over threads, batches and pages.
#include "quern/cpu/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "quern/cpu/kernels.h"
#include "quern/cpu/test_data.h"
#include "quern/ops/reference.h"
#include "quern/os/cpu_features.h"

namespace quern::cpu {
namespace {

using test::Activations;
using test::Pages;
using test::RandomMatrix;
using test::Sequences;
using test::WeightKind;

/// The largest error that an operation may have, relative to the size that its comment names.
struct Bounds {
  double linear_int8;   // of |x| |w|, the lengths of the two vectors
  double linear_exact;  // the same
  double rms_norm;      // of the value, or of 1 where that is less
  double gated;         // the same
  double rope;          // the same
  double attention;     // of the largest value in the cache
};
const std::map<std::string, Bounds, std::less<>> kBounds = {
    //             int8  exact  norm  gated  rope  attention
    {"avx512", {8e-3, 4e-7, 2e-6, 2e-6, 1e-6, 4e-6}},
    {"avx2", {8e-3, 4e-7, 2e-6, 2e-6, 1e-6, 4e-6}},
    {"avx2-vnni", {8e-3, 4e-7, 2e-6, 2e-6, 1e-6, 4e-6}},
};

std::vector<std::string> testable_isas() {
  std::vector<std::string> names;
  for (const Isa& isa : isas()) {
    if (isa.supported && isa.name != "reference") names.emplace_back(isa.name);
  }
  return names;
}

std::unique_ptr<ops::Device> device(std::string_view isa, int threads = 2, Compute compute = Compute::kInt8) {
  auto made = make_cpu_device({.isa = isa, .threads = threads, .compute = compute});
  EXPECT_TRUE(made) << made.error().message;
  return std::move(made).value();
}

std::unique_ptr<ops::Weight> pack(ops::Device& on, const std::vector<ops::WeightPart>& parts) {
  auto weight = on.pack(parts);
  EXPECT_TRUE(weight) << weight.error().message;
  return std::move(weight).value();
}

double length(const float* values, std::int64_t count) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) squares += static_cast<double>(values[i]) * values[i];
  return std::sqrt(squares);
}

class Cpu : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const Bounds& bounds() const { return kBounds.at(GetParam()); }
  std::unique_ptr<ops::Device> reference = ops::make_reference_device();
};

void expect_near(const ops::Mat& seen, const ops::Mat& wanted, double bound) {
  for (std::int64_t r = 0; r < seen.rows; ++r) {
    for (std::int64_t c = 0; c < seen.cols; ++c) {
      const double value = wanted.row(r)[c];
      ASSERT_NEAR(seen.row(r)[c], value, bound * std::max(1.0, std::abs(value))) << "row " << r << " column " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Cpu, testing::ValuesIn(testable_isas()), [](const auto& of) {
  std::string name = of.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(Cpu, TheForcedIsaIsTheOneThatRuns) {
  EXPECT_EQ(device(GetParam())->name(), GetParam());
}

TEST_P(Cpu, LinearIsNearTheReference) {
  for (const Compute compute : {Compute::kInt8, Compute::kExact}) {
    const auto cpu = device(GetParam(), 2, compute);
    for (const WeightKind& kind : test::weight_kinds()) {
      const bool quantized = tensor::affine_form({.encoding = kind.encoding}) || kind.bits != 0;
      const double bound = quantized && compute == Compute::kInt8 ? bounds().linear_int8 : bounds().linear_exact;
      for (const auto& [n, steps] : {std::pair{1, 1}, {16, 2}, {37, 3}, {100, 1}}) {
        const std::int64_t k = kind.column_step() * steps + (quantized ? 0 : n % 11);
        SCOPED_TRACE(testing::Message() << kind.name() << " [" << n << ", " << k << "] compute "
                                        << static_cast<int>(compute));
        const RandomMatrix w(kind, n, k, static_cast<unsigned>(n));
        const auto packed = pack(*cpu, {w.part()});
        const auto plain = pack(*reference, {w.part()});
        std::vector<double> lengths;
        std::vector<float> row(static_cast<std::size_t>(k));
        for (int i = 0; i < n; ++i) {
          tensor::dequantize_row(w.view, i, row.data());
          lengths.push_back(length(row.data(), k));
        }
        for (const int tokens : {1, 2, 3, 7, 8, 13, 40}) {
          const Activations x(tokens, k, 5);
          const Activations seen(tokens, n);
          const Activations wanted(tokens, n);
          cpu->linear(*packed, x.mat, seen.mat, {});
          reference->linear(*plain, x.mat, wanted.mat, {});
          for (int t = 0; t < tokens; ++t) {
            for (int i = 0; i < n; ++i) {
              ASSERT_NEAR(seen.mat.row(t)[i], wanted.mat.row(t)[i],
                          bound * lengths[static_cast<std::size_t>(i)] * length(x.mat.row(t), k))
                  << "token " << t << " of " << tokens << ", output " << i;
            }
          }
        }
      }
    }
  }
}

TEST_P(Cpu, LinearAddsBiasScalesAndAccumulates) {
  const RandomMatrix w({}, 21, 33, 3);
  const auto cpu = device(GetParam());
  const auto packed = pack(*cpu, {w.part()});
  const auto plain = pack(*reference, {w.part()});
  const Activations x(5, 33, 1);
  const Activations seen(5, 21, 2);
  const Activations wanted(seen);
  std::vector<float> bias(21);
  std::iota(bias.begin(), bias.end(), -7.0F);
  const ops::LinearOptions options{.bias = bias, .scale = 0.5F, .accumulate = true};
  cpu->linear(*packed, x.mat, seen.mat, options);
  reference->linear(*plain, x.mat, wanted.mat, options);
  expect_near(seen.mat, wanted.mat, 2e-6);
}

TEST_P(Cpu, StackedPartsOfManyKindsEqualThePartsAlone) {
  const auto cpu = device(GetParam());
  const WeightKind q4{.encoding = tensor::Encoding::kQ4K};
  const RandomMatrix a(q4, 21, 256, 1);
  const RandomMatrix b(q4, 10, 256, 2);
  const RandomMatrix c({.encoding = tensor::Encoding::kQ6K}, 33, 256, 3);
  const RandomMatrix d({.encoding = tensor::Encoding::kF16}, 5, 256, 4);
  const std::array<std::int32_t, 12> order = {20, 3, 3, 0, 1, 2, 4, 5, 6, 7, 8, 19};
  const std::vector<ops::WeightPart> parts = {{.view = a.view, .row_order = order}, b.part(), c.part(), d.part()};
  const auto stacked = pack(*cpu, parts);
  ASSERT_EQ(stacked->rows(), 12 + 10 + 33 + 5);
  const Activations x(3, 256, 9);
  const Activations whole(3, stacked->rows());
  const Activations pieces(whole);
  std::vector<float> bias(static_cast<std::size_t>(stacked->rows()));
  std::iota(bias.begin(), bias.end(), 0.0F);
  cpu->linear(*stacked, x.mat, whole.mat, {.bias = bias});
  std::int64_t first = 0;
  for (const ops::WeightPart& part : parts) {
    const auto alone = pack(*cpu, {part});
    cpu->linear(
        *alone, x.mat, pieces.mat.columns(first, alone->rows()),
        {.bias = std::span(bias).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(alone->rows()))});
    first += alone->rows();
  }
  EXPECT_TRUE(whole.same_bits(pieces));
}

TEST_P(Cpu, EmbedGivesTheVeryValuesOfTheFile) {
  const auto cpu = device(GetParam());
  for (const WeightKind& kind : test::weight_kinds()) {
    const std::int64_t k = kind.column_step() * 3;
    const RandomMatrix w(kind, 37, k, 11);
    const auto packed = pack(*cpu, {w.part()});
    const std::array<std::int32_t, 4> ids = {36, 0, 17, 36};
    const Activations out(4, k);
    cpu->embed(*packed, ids, 1.0F, out.mat);
    std::vector<float> row(static_cast<std::size_t>(k));
    for (std::int64_t t = 0; t < 4; ++t) {
      tensor::dequantize_row(w.view, ids[static_cast<std::size_t>(t)], row.data());
      for (std::int64_t i = 0; i < k; ++i) {
        ASSERT_EQ(out.mat.row(t)[i], row[static_cast<std::size_t>(i)]) << kind.name() << " column " << i;
      }
    }
  }
}

TEST_P(Cpu, NormAndGatedAreNearTheReference) {
  const auto cpu = device(GetParam());
  for (const std::int64_t cols : {1, 5, 16, 31, 576, 1537}) {
    SCOPED_TRACE(cols);
    const Activations x(19, cols, 1);
    const Activations weight(1, cols, 2);
    const Activations seen(19, cols);
    const Activations wanted(19, cols);
    const std::span<const float> weights(weight.mat.data, static_cast<std::size_t>(cols));
    cpu->rms_norm(x.mat, weights, 1e-5F, seen.mat);
    reference->rms_norm(x.mat, weights, 1e-5F, wanted.mat);
    expect_near(seen.mat, wanted.mat, bounds().rms_norm);
    Activations gate(19, cols, 3);
    for (float& value : gate.values) value *= 8.0F;
    for (const auto activation : {ops::Activation::kSilu, ops::Activation::kGeluTanh, ops::Activation::kGelu}) {
      cpu->gated(activation, gate.mat, x.mat, seen.mat);
      reference->gated(activation, gate.mat, x.mat, wanted.mat);
      expect_near(seen.mat, wanted.mat, 10 * bounds().gated);  // |x| reaches ten
    }
  }
}

TEST_P(Cpu, SiluAtTheEnds) {
  const auto cpu = device(GetParam());
  std::vector<float> gate = {-1e30F, -200.0F, -90.0F, 0.0F, 90.0F, 1e30F};
  std::vector<float> up(6, 1.0F);
  std::vector<float> out(6);
  const auto mat = [](std::vector<float>& v) { return ops::Mat{.data = v.data(), .rows = 1, .cols = 6, .stride = 6}; };
  cpu->gated(ops::Activation::kSilu, mat(gate), mat(up), mat(out));
  EXPECT_THAT(out, testing::ElementsAre(testing::FloatNear(0, 1e-7F), testing::FloatNear(0, 1e-30F),
                                        testing::FloatNear(0, 1e-30F), 0, 90, 1e30F));
}

struct AttentionInput {
  ops::AttentionShape shape;
  Sequences sequences;
  std::vector<float> frequency = {};
  ops::Rope::Pairing pairing = ops::Rope::Pairing::kHalves;
};

/// The layer's keys and values up to each row's `held` come from an earlier pass over the same device.
Activations attend(ops::Device& on, const AttentionInput& input, unsigned seed, Activations* rotated = nullptr) {
  const ops::AttentionShape& shape = input.shape;
  Pages pages(on, input.sequences.page_count, shape);
  const ops::Rope rope{.inverse_frequency = input.frequency, .magnitude = 1.25F, .pairing = input.pairing};
  const auto total_of = [&](const std::vector<ops::BatchRow>& rows) {
    std::int32_t total = 0;
    for (const ops::BatchRow& row : rows) total += row.tokens;
    return total;
  };
  const auto store = [&](std::vector<ops::BatchRow> rows, unsigned data_seed) {
    const std::int32_t total = total_of(rows);
    const std::vector<std::int32_t> tokens(static_cast<std::size_t>(total));
    Activations q(total, std::int64_t{shape.heads} * shape.head_dim, data_seed);
    Activations k(total, std::int64_t{shape.kv_heads} * shape.head_dim, data_seed + 1);
    Activations v(total, std::int64_t{shape.kv_heads} * shape.head_dim, data_seed + 2);
    k.round_to_f16();
    v.round_to_f16();
    on.rope_store({.tokens = tokens, .rows = rows, .outputs = {}}, rope, shape, q.mat, k.mat, v.mat, pages.layer);
    return q;
  };
  std::vector<ops::BatchRow> held;
  std::int32_t next = 0;
  for (const ops::BatchRow& row : input.sequences.rows) {
    if (row.first_position == 0) continue;
    held.push_back({.first_token = next, .tokens = row.first_position, .first_position = 0, .pages = row.pages});
    next += row.first_position;
  }
  if (!held.empty()) store(held, seed + 10);
  const Activations q = store(input.sequences.rows, seed);
  Activations out(q.mat.rows, q.mat.cols);
  on.attention(input.sequences.batch(), shape, q.mat, pages.layer, out.mat);
  if (rotated != nullptr) rotated->values = q.values;
  return out;
}

std::vector<ops::AttentionShape> attention_shapes() {
  return {{.heads = 9, .kv_heads = 3, .head_dim = 64, .scale = 0.125F},
          {.heads = 2, .kv_heads = 2, .head_dim = 16, .scale = 0.25F, .window = 5},
          {.heads = 2, .kv_heads = 1, .head_dim = 7, .scale = 0.4F, .window = 300},
          {.heads = 8, .kv_heads = 1, .head_dim = 80, .scale = 0.5F, .softcap = 3.0F},
          {.heads = 15, .kv_heads = 1, .head_dim = 8, .scale = 1.0F},
          {.heads = 1, .kv_heads = 1, .head_dim = 512, .scale = 0.05F, .window = 256}};
}

TEST_P(Cpu, AttentionIsNearTheReference) {
  for (const int threads : {1, 4}) {
    const auto cpu = device(GetParam(), threads);
    for (const ops::AttentionShape& shape : attention_shapes()) {
      for (const auto& rows : std::vector<std::vector<Sequences::Row>>{
               {{0, 1}}, {{0, 40}}, {{700, 1}}, {{255, 2}, {0, 5}, {256, 1}, {511, 17}}}) {
        SCOPED_TRACE(testing::Message() << "heads " << shape.heads << " dim " << shape.head_dim << " window "
                                        << shape.window << " first row " << rows[0].held << "+" << rows[0].tokens);
        const AttentionInput input{.shape = shape, .sequences = Sequences(rows)};
        const Activations seen = attend(*cpu, input, 50);
        const Activations wanted = attend(*reference, input, 50);
        expect_near(seen.mat, wanted.mat, 4 * bounds().attention);  // values reach four
      }
    }
  }
}

TEST_P(Cpu, RopeIsNearTheReference) {
  const auto cpu = device(GetParam());
  for (const auto pairing : {ops::Rope::Pairing::kHalves, ops::Rope::Pairing::kAdjacent}) {
    for (const std::size_t half : {std::size_t{3}, std::size_t{16}, std::size_t{20}}) {
      AttentionInput input{.shape = {.heads = 4, .kv_heads = 2, .head_dim = 40, .scale = 0.2F},
                           .sequences = Sequences({{300, 3}, {0, 20}}),
                           .frequency = {},
                           .pairing = pairing};
      for (std::size_t i = 0; i < half; ++i) input.frequency.push_back(std::pow(0.6F, static_cast<float>(i)));
      Activations seen_q(23, 160);
      Activations wanted_q(23, 160);
      const Activations seen = attend(*cpu, input, 60, &seen_q);
      const Activations wanted = attend(*reference, input, 60, &wanted_q);
      expect_near(seen_q.mat, wanted_q.mat, bounds().rope);
      expect_near(seen.mat, wanted.mat, 4e-3);  // rotated keys are rounded to f16
    }
  }
}

// ---- bit equality

TEST_P(Cpu, BitsOfLinearDontDependOnThreadsOrTokens) {
  for (const Compute compute : {Compute::kInt8, Compute::kExact}) {
    const auto one = device(GetParam(), 1, compute);
    const auto two = device(GetParam(), 2, compute);
    const auto five = device(GetParam(), 5, compute);
    for (const WeightKind& kind : test::weight_kinds()) {
      const std::int64_t n = 531;
      const std::int64_t k = kind.column_step() * (kind.column_step() == 1 ? 77 : 3);
      const RandomMatrix w(kind, n, k, 3);
      const auto packed = pack(*one, {w.part()});
      const Activations x(37, k, 4);
      const Activations whole(37, n);
      one->linear(*packed, x.mat, whole.mat, {});
      for (ops::Device* other : {two.get(), five.get()}) {
        const auto packed_there = pack(*other, {w.part()});
        const Activations y(37, n);
        other->linear(*packed_there, x.mat, y.mat, {});
        EXPECT_TRUE(y.same_bits(whole)) << kind.name();
      }
      for (const std::int64_t step : {1, 3, 5, 12}) {
        const Activations y(37, n);
        for (std::int64_t t = 0; t < 37; t += step) {
          const std::int64_t count = std::min<std::int64_t>(step, 37 - t);
          five->linear(*packed, x.rows(t, count), y.rows(t, count), {});
        }
        EXPECT_TRUE(y.same_bits(whole)) << kind.name() << " in steps of " << step;
      }
    }
  }
}

/// `input`'s only row in passes of `step` tokens, over pages shuffled by `page_seed`.
Activations attend_in_steps(ops::Device& on, const ops::AttentionShape& shape, std::int32_t tokens, std::int32_t step,
                            unsigned page_seed) {
  const Sequences all({{0, tokens}}, page_seed);
  Pages pages(on, all.page_count, shape);
  const std::vector<float> frequency = {1.0F, 0.1F};
  Activations q(tokens, std::int64_t{shape.heads} * shape.head_dim, 1);
  Activations k(tokens, std::int64_t{shape.kv_heads} * shape.head_dim, 2);
  Activations v(tokens, std::int64_t{shape.kv_heads} * shape.head_dim, 3);
  Activations out(tokens, q.mat.cols);
  for (std::int32_t t = 0; t < tokens; t += step) {
    const std::int32_t count = std::min(step, tokens - t);
    const ops::BatchRow row{.first_token = 0, .tokens = count, .first_position = t, .pages = all.pages[0]};
    const ops::Batch batch{
        .tokens = std::span(all.tokens).first(static_cast<std::size_t>(count)), .rows = {&row, 1}, .outputs = {}};
    on.rope_store(batch, {.inverse_frequency = frequency}, shape, q.rows(t, count), k.rows(t, count), v.rows(t, count),
                  pages.layer);
    on.attention(batch, shape, q.rows(t, count), pages.layer, out.rows(t, count));
  }
  return out;
}

TEST_P(Cpu, BitsOfAttentionDontDependOnChunksThreadsOrPages) {
  const auto one = device(GetParam(), 1);
  const auto two = device(GetParam(), 2);
  const auto five = device(GetParam(), 5);
  for (const ops::AttentionShape& shape : attention_shapes()) {
    SCOPED_TRACE(testing::Message() << "heads " << shape.heads << " dim " << shape.head_dim);
    constexpr std::int32_t kTokens = 540;
    const Activations whole = attend_in_steps(*one, shape, kTokens, kTokens, 1);
    EXPECT_TRUE(attend_in_steps(*two, shape, kTokens, kTokens, 2).same_bits(whole)) << "2 threads, other pages";
    EXPECT_TRUE(attend_in_steps(*five, shape, kTokens, 37, 3).same_bits(whole)) << "5 threads, chunks of 37";
    EXPECT_TRUE(attend_in_steps(*five, shape, kTokens, 1, 4).same_bits(whole)) << "5 threads, token by token";
    EXPECT_TRUE(attend_in_steps(*one, shape, kTokens, 256, 5).same_bits(whole)) << "1 thread, chunks of 256";
  }
}

TEST_P(Cpu, AValueBeyondF16DoesntReachEarlierTokens) {
  const auto cpu = device(GetParam(), 1);
  const ops::AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 16, .scale = 0.25F};
  const Sequences all({{0, 8}});
  Pages pages(*cpu, all.page_count, shape);
  const Activations q(8, 16, 1);
  const Activations k(8, 16, 2);
  const Activations v(8, 16, 3);
  v.mat.row(7)[3] = 1e9F;
  const Activations out(8, 16);
  cpu->rope_store(all.batch(), {}, shape, q.mat, k.mat, v.mat, pages.layer);
  cpu->attention(all.batch(), shape, q.mat, pages.layer, out.mat);
  for (std::int64_t t = 0; t < 8; ++t) {
    for (std::int64_t i = 0; i < 16; ++i) EXPECT_TRUE(std::isfinite(out.mat.row(t)[i])) << t;
    EXPECT_LT(std::abs(out.mat.row(t)[3]), t < 7 ? 5.0F : 65504.0F);
  }
}

// ---- the choice of an ISA

TEST(CpuDevice, IntegerProductsHaveTheSameBitsOnEveryIsa) {
  const auto names = testable_isas();
  if (names.size() < 2) GTEST_SKIP() << "this processor runs one ISA";
  for (const WeightKind& kind : test::weight_kinds()) {
    const std::int64_t k = kind.column_step() * 4;
    const RandomMatrix w(kind, 50, k, 3);
    Activations x(9, k, 4);
    for (std::int64_t i = 0; i < k; ++i) x.mat.row(0)[i] = i % 2 == 0 ? 1.0F : -1.0F;  // every int8 at its end
    const auto first = device(names[0]);
    const Activations wanted(9, 50);
    first->linear(*pack(*first, {w.part()}), x.mat, wanted.mat, {});
    for (const std::string& name : names) {
      const auto other = device(name);
      const Activations y(9, 50);
      other->linear(*pack(*other, {w.part()}), x.mat, y.mat, {});
      EXPECT_TRUE(y.same_bits(wanted)) << kind.name() << " on " << name;
    }
  }
}

TEST(CpuDevice, AutoIsTheBestSupportedOne) {
  for (const Isa& isa : isas()) {
    if (!isa.supported) continue;
    EXPECT_EQ(device("auto")->name(), isa.name);
    break;
  }
  EXPECT_EQ(device("reference")->name(), "reference");
}

TEST(CpuDevice, EachIsaHasItsOwnTable) {
  const Kernels* all[] = {avx2_kernels(), avx2_vnni_kernels(), avx512_kernels()};
  if (all[0] == nullptr) GTEST_SKIP() << "not an x86-64 build";
  EXPECT_NE(all[0]->linear_int8, all[1]->linear_int8);
  EXPECT_NE(all[1]->linear_int8, all[2]->linear_int8);
  EXPECT_STREQ(all[0]->name, "avx2");
  EXPECT_STREQ(all[1]->name, "avx2-vnni");
  EXPECT_STREQ(all[2]->name, "avx512");
}

TEST(CpuDevice, WhatIsntThereIsAnErrorThatListsWhatIs) {
  const auto unknown = make_cpu_device({.isa = "sse9"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidRequest);
  EXPECT_THAT(unknown.error().message, testing::AllOf(testing::HasSubstr("sse9"), testing::HasSubstr("reference")));
  for (const Isa& isa : isas()) {
    EXPECT_EQ(make_cpu_device({.isa = isa.name}).has_value(), isa.supported) << isa.name;
    EXPECT_TRUE(!isa.supported || unknown.error().message.find(isa.name) != std::string::npos) << isa.name;
  }
  EXPECT_FALSE(make_cpu_device({.threads = -1}));
}

}  // namespace
}  // namespace quern::cpu
