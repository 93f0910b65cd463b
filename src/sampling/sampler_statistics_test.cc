// Frequencies of many draws against the probabilities that they stand for: chi-square at fixed seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quern/sampling/sampler.h"

namespace quern::sampling {
namespace {

constexpr int kDraws = 40000;

/// Chi-square of `kDraws` draws over tokens with the probabilities given (all well above 5 / kDraws, or 0).
double chi_square(const std::vector<float>& logits, const SamplingParams& params, const std::vector<double>& expected,
                  bool over_choices) {
  Sampler sampler;
  std::vector<int> counts(expected.size());
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const DrawPlace place = over_choices ? DrawPlace{static_cast<std::uint32_t>(i), 0} : DrawPlace{0, i};
    const auto drawn = sampler.draw(logits, params, {}, place);
    if (!drawn) return 1e9;
    ++counts[static_cast<std::size_t>(*drawn)];
  }
  double sum = 0.0;
  for (std::size_t id = 0; id < expected.size(); ++id) {
    const double wanted = expected[id] * kDraws;
    if (wanted == 0.0) {
      if (counts[id] != 0) return 1e9;
      continue;
    }
    sum += (counts[id] - wanted) * (counts[id] - wanted) / wanted;
  }
  return sum;
}

// 0.4, 0.25, 0.15, 0.1, 0.06, 0.04, out of order.
const std::vector<double> kProbabilities = {0.1, 0.4, 0.04, 0.25, 0.06, 0.15};
// Of chi-square with five degrees of freedom, one draw in a million lies above 35.9.
constexpr double kLimit = 35.9;

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)) + 3.0F);
  return logits;
}

TEST(SamplerStatistics, TemperatureOne) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 123456789012345ULL}) {
    SamplingParams params;
    params.seed = seed;
    EXPECT_LT(chi_square(logits_of(kProbabilities), params, kProbabilities, false), kLimit) << "steps of seed " << seed;
    EXPECT_LT(chi_square(logits_of(kProbabilities), params, kProbabilities, true), kLimit)
        << "choices of seed " << seed;
  }
}

TEST(SamplerStatistics, TheTestSeesAWrongDistribution) {
  std::vector<double> wrong = kProbabilities;
  wrong[0] = 0.11;
  wrong[1] = 0.39;
  EXPECT_GT(chi_square(logits_of(kProbabilities), {}, wrong, false), kLimit);
}

TEST(SamplerStatistics, TemperatureTwo) {
  std::vector<double> flat;
  double total = 0.0;
  for (const double p : kProbabilities) total += std::sqrt(p);
  for (const double p : kProbabilities) flat.push_back(std::sqrt(p) / total);
  SamplingParams params;
  params.temperature = 2.0F;
  EXPECT_LT(chi_square(logits_of(kProbabilities), params, flat, false), kLimit);
}

TEST(SamplerStatistics, FiltersRenormalize) {
  SamplingParams top_k;
  top_k.top_k = 3;
  const std::vector<double> three = {0.0, 0.4 / 0.8, 0.0, 0.25 / 0.8, 0.0, 0.15 / 0.8};
  EXPECT_LT(chi_square(logits_of(kProbabilities), top_k, three, false), kLimit);
  SamplingParams top_p;
  top_p.top_p = 0.7F;
  EXPECT_LT(chi_square(logits_of(kProbabilities), top_p, three, false), kLimit);
  SamplingParams min_p;
  min_p.min_p = 0.3F;
  EXPECT_LT(chi_square(logits_of(kProbabilities), min_p, three, false), kLimit);
}

TEST(SamplerStatistics, XtcAppliesWithItsProbability) {
  // With 0.25: 0.4 and 0.25 reach 0.2; the least of them stays, so 0.4 goes and the rest share.
  SamplingParams params;
  params.xtc_probability = 0.25F;
  params.xtc_threshold = 0.2F;
  std::vector<double> expected;
  for (const double p : kProbabilities) expected.push_back(p * 0.75 + (p == 0.4 ? 0.0 : p / 0.6) * 0.25);
  EXPECT_LT(chi_square(logits_of(kProbabilities), params, expected, false), kLimit);
}

TEST(SamplerStatistics, AdjacentStepsAreIndependent) {
  const std::vector<float> even(4, 0.0F);
  Sampler sampler;
  std::vector<int> pairs(16);
  std::int32_t before = 0;
  for (std::uint64_t step = 0; step <= kDraws; ++step) {
    const std::int32_t drawn = sampler.draw(even, {}, {}, {0, step}).value();
    if (step > 0) ++pairs[static_cast<std::size_t>(before * 4 + drawn)];
    before = drawn;
  }
  double sum = 0.0;
  for (const int count : pairs) sum += (count - kDraws / 16.0) * (count - kDraws / 16.0) / (kDraws / 16.0);
  EXPECT_LT(sum, 56.5);  // fifteen degrees of freedom, one in a million
}

}  // namespace
}  // namespace quern::sampling
