// The estimator finds the cost of tokens and keys, follows a change, and answers with the largest budget that fits.
#include "quern/scheduling/step_time.h"

#include <gtest/gtest.h>

#include <random>

namespace quern::scheduling {
namespace {

double cost(const StepLoad& load, double slower = 1.0) {
  return slower * (1.5 + 0.3 * static_cast<double>(load.tokens) + 2e-5 * static_cast<double>(load.keys));
}

StepLoad random_load(std::mt19937& random) {
  const auto tokens = static_cast<std::int64_t>(1 + random() % 300);
  return {tokens, tokens * static_cast<std::int64_t>(1 + random() % 8000)};
}

TEST(StepTime, BeforeAnythingWasSeenThereIsNoBound) {
  EXPECT_EQ(StepTime().tokens_within(100.0, {}, 0, 512), 512);
}

TEST(StepTime, LearnsTheCostOfTokensAndKeys) {
  std::mt19937 random(1);
  StepTime time;
  for (int i = 0; i < 200; ++i) {
    const StepLoad load = random_load(random);
    const double noise = 0.95 + 0.1 * static_cast<double>(random() % 1000) / 1000.0;
    time.observe(load, cost(load) * noise);
  }
  for (int i = 0; i < 50; ++i) {
    const StepLoad load = random_load(random);
    EXPECT_NEAR(time.predict(load) / cost(load), 1.0, 0.08);
  }
}

TEST(StepTime, FollowsAMachineThatBecameSlower) {
  std::mt19937 random(2);
  StepTime time;
  for (int i = 0; i < 300; ++i) {
    const StepLoad load = random_load(random);
    time.observe(load, cost(load, i < 150 ? 1.0 : 2.0));
  }
  const StepLoad load{100, 100'000};
  EXPECT_NEAR(time.predict(load) / cost(load, 2.0), 1.0, 0.1);
}

TEST(StepTime, TheBudgetIsTheLargestThatFits) {
  std::mt19937 random(3);
  StepTime time;
  for (int i = 0; i < 200; ++i) {
    const StepLoad load = random_load(random);
    time.observe(load, cost(load));
  }
  const StepLoad running{8, 8 * 1000};
  const auto tokens = time.tokens_within(50.0, running, 16'000, 4096);
  const auto with = [&](std::int64_t more) {
    return StepLoad{running.tokens + more, running.keys + more * 16'000 + more * (more + 1) / 2};
  };
  EXPECT_GT(tokens, 0);
  EXPECT_LE(time.predict(with(tokens)), 50.0);
  EXPECT_GT(time.predict(with(tokens + 1)), 50.0);
  EXPECT_LT(time.tokens_within(50.0, running, 64'000, 4096), tokens) << "a longer context costs more a token";
  EXPECT_EQ(time.tokens_within(0.1, running, 0, 4096), 0) << "the running rows alone take longer";
  EXPECT_EQ(time.tokens_within(1e9, running, 0, 4096), 4096);
}

TEST(StepTime, AConstantLoadKeepsItsPredictionSound) {
  StepTime time;
  const StepLoad load{4, 4000};
  for (int i = 0; i < 20'000; ++i) time.observe(load, cost(load));
  EXPECT_NEAR(time.predict(load), cost(load), 1e-6);
  for (int i = 0; i < 200; ++i) {
    const StepLoad other{4 + i, 4000 + i * 1000};
    time.observe(other, cost(other));
  }
  EXPECT_NEAR(time.predict({100, 100'000}) / cost({100, 100'000}), 1.0, 0.1);
}

}  // namespace
}  // namespace quern::scheduling
