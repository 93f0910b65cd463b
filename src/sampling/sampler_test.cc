// Each processor against a plain one that sorts everything, edges, and determinism.
#include "quern/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "quern/sampling/random.h"

namespace quern::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(std::size_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = normal(random);
  // Ties, so that the order of equal logits matters.
  for (std::size_t i = 7; i < vocab; i += 11) logits[i] = logits[i - 5];
  return logits;
}

struct Ranked {
  std::int32_t id;
  double logit;
  double probability;
};

void normalize(std::vector<Ranked>& ranked) {
  double total = 0.0;
  for (const Ranked& one : ranked) total += one.probability;
  for (Ranked& one : ranked) one.probability /= total;
}

/// The definition, plainly: what remains after all filters, best first.
std::vector<Ranked> oracle(std::vector<float> logits, const SamplingParams& params, const History& history,
                           double xtc) {
  for (const auto& [id, bias] : params.logit_bias) logits[static_cast<std::size_t>(id)] += bias;
  const auto counts = [](std::span<const std::int32_t> tokens, std::int32_t context) {
    std::map<std::size_t, float> result;
    std::size_t first = 0;
    if (context > 0 && static_cast<std::size_t>(context) < tokens.size()) {
      first = tokens.size() - static_cast<std::size_t>(context);
    }
    for (std::size_t i = first; i < tokens.size(); ++i) result[static_cast<std::size_t>(tokens[i])] += 1.0F;
    return result;
  };
  const auto output = history.tokens.subspan(history.prompt_tokens);
  for (const auto& [id, times] : counts(history.tokens, params.repetition_context)) {
    logits[id] = logits[id] > 0 ? logits[id] / params.repetition_penalty : logits[id] * params.repetition_penalty;
  }
  for (const auto& [id, times] : counts(output, params.presence_context)) logits[id] -= params.presence_penalty;
  for (const auto& [id, times] : counts(output, params.frequency_context)) {
    logits[id] -= params.frequency_penalty * times;
  }

  std::vector<Ranked> ranked;
  for (std::size_t id = 0; id < logits.size(); ++id) ranked.push_back({static_cast<std::int32_t>(id), logits[id], 0.0});
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.logit > b.logit; });
  if (params.temperature == 0.0F) return {ranked.front()};
  for (Ranked& one : ranked) one.probability = std::exp((one.logit - ranked.front().logit) / params.temperature);
  if (params.top_k > 0) ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(params.top_k)));
  normalize(ranked);
  double reached = 0.0;
  for (std::size_t i = 0; params.top_p < 1.0F && i < ranked.size(); ++i) {
    reached += ranked[i].probability;
    if (reached >= params.top_p) ranked.resize(i + 1);
  }
  const double best = ranked.front().probability;
  std::erase_if(ranked, [&](const Ranked& one) { return one.probability < params.min_p * best; });
  normalize(ranked);
  if (xtc < params.xtc_probability) {
    const auto above = std::count_if(ranked.begin(), ranked.end(),
                                     [&](const Ranked& one) { return one.probability >= params.xtc_threshold; });
    if (above > 1) ranked.erase(ranked.begin(), ranked.begin() + above - 1);
  }
  normalize(ranked);
  return ranked;
}

/// Draws at many steps: each must be one that the oracle leaves, and everything likely must come.
void expect_support(const std::vector<float>& logits, const SamplingParams& params, const History& history = {}) {
  Sampler sampler;
  std::map<bool, std::set<std::int32_t>> seen;
  constexpr int kSteps = 3000;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto drawn = sampler.draw(logits, params, history, {0, step});
    ASSERT_TRUE(drawn) << drawn.error().message;
    seen[draw_random(params.seed, 0, step).xtc < params.xtc_probability].insert(*drawn);
  }
  for (const auto& [xtc, ids] : seen) {
    const auto allowed = oracle(logits, params, history, xtc ? 0.0 : 1.0);
    std::set<std::int32_t> allowed_ids;
    for (const Ranked& one : allowed) {
      allowed_ids.insert(one.id);
      if (one.probability > 0.02) {
        EXPECT_TRUE(ids.contains(one.id)) << one.id << " at " << one.probability << " never came";
      }
    }
    for (const std::int32_t id : ids) EXPECT_TRUE(allowed_ids.contains(id)) << id;
  }
}

TEST(Sampler, EachFilterLeavesWhatItsDefinitionLeaves) {
  const auto logits = random_logits(1500, 1);
  for (const std::int32_t top_k : {2, 5, 40, 300, 1499, 1500, 5000}) {
    SamplingParams params;
    params.top_k = top_k;
    expect_support(logits, params);
  }
  for (const float top_p : {0.0F, 0.01F, 0.3F, 0.7F, 0.95F, 0.999F}) {
    SamplingParams params;
    params.top_p = top_p;
    expect_support(logits, params);
    params.temperature = 3.0F;  // flat: hundreds are kept
    expect_support(logits, params);
  }
  for (const float min_p : {0.01F, 0.1F, 0.5F, 1.0F}) {
    SamplingParams params;
    params.min_p = min_p;
    expect_support(logits, params);
  }
}

TEST(Sampler, XtcDropsAllButTheLeastOfTheLikely) {
  // Probabilities 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(0.1F), std::log(0.4F), std::log(0.3F), std::log(0.2F)};
  for (const float threshold : {0.05F, 0.15F, 0.25F, 0.35F, 0.5F}) {
    for (const float probability : {0.5F, 1.0F}) {
      SamplingParams params;
      params.xtc_threshold = threshold;
      params.xtc_probability = probability;
      expect_support(logits, params);
    }
  }
}

TEST(Sampler, FiltersCombine) {
  SamplingParams params;
  params.temperature = 1.7F;
  params.top_k = 50;
  params.top_p = 0.9F;
  params.min_p = 0.05F;
  params.xtc_probability = 0.5F;
  params.xtc_threshold = 0.1F;
  for (std::uint32_t seed = 0; seed < 8; ++seed) expect_support(random_logits(700, seed), params);
}

TEST(Sampler, PenaltiesAndBiasMoveTheArgMax) {
  std::mt19937 random(5);
  Sampler sampler;
  for (int round = 0; round < 300; ++round) {
    const auto logits = random_logits(40, static_cast<std::uint32_t>(round));
    std::vector<std::int32_t> tokens(random() % 30);
    for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 40);
    const History history{tokens, tokens.empty() ? 0 : random() % tokens.size()};
    const auto some = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
    SamplingParams params;
    params.temperature = 0.0F;
    if (random() % 2 != 0) params.repetition_penalty = some(0.5F, 2.0F);
    if (random() % 2 != 0) params.presence_penalty = some(-2.0F, 2.0F);
    if (random() % 2 != 0) params.frequency_penalty = some(-2.0F, 2.0F);
    params.repetition_context = static_cast<std::int32_t>(random() % 20);
    params.presence_context = static_cast<std::int32_t>(random() % 10);
    params.frequency_context = static_cast<std::int32_t>(random() % 10);
    if (random() % 2 != 0) params.logit_bias = {{3, some(-9.0F, 9.0F)}, {20, some(-9.0F, 9.0F)}};
    const auto drawn = sampler.draw(logits, params, history, {});
    ASSERT_TRUE(drawn);
    EXPECT_EQ(*drawn, oracle(logits, params, history, 1.0).front().id) << "round " << round;
  }
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) {
  Sampler sampler;
  SamplingParams greedy;
  greedy.temperature = 0.0F;
  EXPECT_EQ(*sampler.draw(std::vector<float>{1.0F, 5.0F, 5.0F, 2.0F, 5.0F}, greedy, {}, {}), 1);
  SamplingParams one;
  one.top_k = 1;
  EXPECT_EQ(*sampler.draw(std::vector<float>{1.0F, 5.0F, 5.0F, 2.0F, 5.0F}, one, {}, {}), 1);
  SamplingParams none;
  none.top_p = 0.0F;
  for (std::uint64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(*sampler.draw(std::vector<float>{1.0F, 5.0F, 5.0F, 2.0F, 5.0F}, none, {}, {0, step}), 1);
  }
}

TEST(Sampler, TinyTemperaturesAndHugeLogitsAreGreedy) {
  Sampler sampler;
  SamplingParams params;
  for (const float temperature : {std::numeric_limits<float>::denorm_min(), 1e-30F, 1e-4F}) {
    params.temperature = temperature;
    const std::vector<float> logits = {-3e38F, 3e38F, 2.9e38F, 0.0F};
    for (std::uint64_t step = 0; step < 50; ++step) EXPECT_EQ(*sampler.draw(logits, params, {}, {0, step}), 1);
  }
  params.temperature = std::numeric_limits<float>::max();
  std::set<std::int32_t> seen;
  for (std::uint64_t step = 0; step < 200; ++step) {
    seen.insert(*sampler.draw(std::vector<float>{0.0F, 50.0F, -50.0F}, params, {}, {0, step}));
  }
  EXPECT_EQ(seen.size(), 3U) << "an endless temperature is uniform";
}

TEST(Sampler, MaskedBiasedAndBannedTokensNeverCome) {
  Sampler sampler;
  SamplingParams params;
  const std::vector<float> one_left = {-kInfinity, -kInfinity, -7.0F, -kInfinity};
  const std::vector<float> even = {1.0F, 1.0F, 1.0F, 1.0F};
  const std::vector<std::int32_t> banned = {0, 3, 900};
  SamplingParams biased;
  biased.logit_bias = {{1, -100.0F}};
  for (std::uint64_t step = 0; step < 500; ++step) {
    EXPECT_EQ(*sampler.draw(one_left, params, {}, {0, step}), 2);
    EXPECT_NE(*sampler.draw(even, biased, {}, {0, step}), 1);
    EXPECT_EQ(*sampler.draw(even, biased, {}, {0, step}, banned), 2);
  }
}

TEST(Sampler, LogitsThatAreNoNumbersAreAnError) {
  Sampler sampler;
  for (const float temperature : {0.0F, 1.0F}) {
    SamplingParams params;
    params.temperature = temperature;
    for (const std::vector<float>& logits :
         {std::vector<float>{0.0F, kNan}, {kNan, 0.0F}, {kInfinity, 0.0F}, {-kInfinity, -kInfinity}, {}}) {
      const auto drawn = sampler.draw(logits, params, {}, {});
      ASSERT_FALSE(drawn);
      EXPECT_EQ(drawn.error().code, ErrorCode::kInternal);
    }
  }
}

TEST(Sampler, ADrawIsAFunctionOfItsArguments) {
  const auto logits = random_logits(3000, 9);
  SamplingParams params;
  params.temperature = 1.3F;
  params.top_p = 0.95F;
  params.frequency_penalty = 0.5F;
  params.seed = 77;
  const std::vector<std::int32_t> tokens = {1, 2, 3, 3};
  Sampler used;
  for (std::uint64_t step = 0; step < 50; ++step) {
    SamplingParams other;
    other.repetition_penalty = 1.5F;
    ASSERT_TRUE(used.draw(random_logits(500, 2), other, {tokens, 1}, {0, step}));  // leaves nothing behind
    Sampler fresh;
    EXPECT_EQ(*used.draw(logits, params, {tokens, 1}, {2, step}), *fresh.draw(logits, params, {tokens, 1}, {2, step}));
  }
}

TEST(Sampler, ChoicesOfOneSeedDiffer) {
  const std::vector<float> even(1000, 0.0F);
  Sampler sampler;
  std::set<std::int32_t> seen;
  for (std::uint32_t choice = 0; choice < 8; ++choice) seen.insert(*sampler.draw(even, {}, {}, {choice, 0}));
  EXPECT_GE(seen.size(), 7U);
}

}  // namespace
}  // namespace quern::sampling
