// Log softmax against a plain one in double; order and finiteness of the list.
#include "quern/sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace quern::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Logprobs, EqualsThePlainSoftmax) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 4.0F);
  std::vector<float> logits(2000);
  for (float& logit : logits) logit = normal(random);
  logits[100] = logits[700];  // a tie
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<std::int32_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });

  for (const std::int32_t top : {0, 1, 20, 2000}) {
    const auto result = logprobs_of(logits, 5, top);
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->logprob, static_cast<double>(logits[5]) - std::log(sum), 1e-5);
    ASSERT_EQ(result->top.size(), static_cast<std::size_t>(top));
    for (std::size_t i = 0; i < result->top.size(); ++i) {
      EXPECT_EQ(result->top[i].id, order[i]);
      EXPECT_NEAR(result->top[i].logprob, static_cast<double>(logits[order[i]]) - std::log(sum), 1e-5);
    }
  }
}

TEST(Logprobs, AreFiniteAndListOnlyWhatHasAProbability) {
  const auto result = logprobs_of(std::vector<float>{-kInfinity, 2.0F, -kInfinity, 3e38F, -3e38F}, 4, 5);
  ASSERT_TRUE(result);
  EXPECT_TRUE(std::isfinite(result->logprob));
  ASSERT_EQ(result->top.size(), 3U);
  EXPECT_EQ(result->top[0].id, 3);
  EXPECT_EQ(result->top[0].logprob, 0.0F);
  EXPECT_EQ(result->top[1].id, 1);
  for (const TokenScore& score : result->top) EXPECT_TRUE(std::isfinite(score.logprob));
}

TEST(Logprobs, RefusesWhatIsNoNumberOrHasNoProbability) {
  EXPECT_FALSE(logprobs_of(std::vector<float>{0.0F, std::numeric_limits<float>::quiet_NaN()}, 0, 1));
  EXPECT_FALSE(logprobs_of(std::vector<float>{0.0F, kInfinity}, 0, 1));
  EXPECT_FALSE(logprobs_of(std::vector<float>{0.0F, -kInfinity}, 1, 1));
  EXPECT_FALSE(logprobs_of(std::vector<float>{0.0F}, 1, 1));
  EXPECT_FALSE(logprobs_of(std::vector<float>{0.0F}, -1, 1));
}

}  // namespace
}  // namespace quern::sampling
