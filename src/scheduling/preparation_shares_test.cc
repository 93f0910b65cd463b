// The rule by example, and the three promises it is made for, in a simulation that counts tokens.
#include "quern/scheduling/preparation_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace quern::scheduling {
namespace {

using testing::ElementsAre;
using Tokens = std::vector<std::int64_t>;

TEST(PreparationShares, ByExample) {
  EXPECT_THAT(preparation_shares(Tokens{1000}, 256), ElementsAre(256));
  EXPECT_THAT(preparation_shares(Tokens{100}, 256), ElementsAre(100));
  EXPECT_THAT(preparation_shares(Tokens{1000, 500}, 256), ElementsAre(128, 128));
  EXPECT_THAT(preparation_shares(Tokens{1000, 50}, 256), ElementsAre(206, 50)) << "what the short one doesn't need";
  EXPECT_THAT(preparation_shares(Tokens{1000, 900, 50, 800}, 256), ElementsAre(166, 1, 50, 39)) << "shared again";
  EXPECT_THAT(preparation_shares(Tokens{500, 500, 500}, 258), ElementsAre(256, 1, 1)) << "equal ones: the oldest";
  EXPECT_THAT(preparation_shares(Tokens{9, 9, 9}, 1), ElementsAre(1, 1, 1)) << "each advances";
}

TEST(PreparationShares, TheSumIsTheBudgetOrTheNeed) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Tokens left(1 + random() % 8);
    for (auto& tokens : left) tokens = 1 + static_cast<std::int64_t>(random() % 300);
    const auto budget = static_cast<std::int64_t>(left.size() + random() % 600);
    const auto shares = preparation_shares(left, budget);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}),
              std::min(budget, std::accumulate(left.begin(), left.end(), std::int64_t{0})));
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_GE(shares[i], 1);
      EXPECT_LE(shares[i], left[i]);
    }
  }
}

// Runs prompts, each with the unit at which it arrives, through units of `budget` tokens, `rows` of them at a time.
// Gives the unit in which each is done.
struct Arrival {
  std::int64_t unit = 0;
  std::int64_t tokens = 0;
};
std::vector<std::int64_t> simulate(const std::vector<Arrival>& arrivals, std::int64_t budget, std::size_t rows) {
  Tokens left;
  for (const Arrival& arrival : arrivals) left.push_back(arrival.tokens);
  std::vector<std::int64_t> done(arrivals.size(), -1);
  for (std::int64_t unit = 0; std::ranges::count(done, -1) > 0; ++unit) {
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < arrivals.size() && running.size() < rows; ++i) {
      if (left[i] > 0 && arrivals[i].unit <= unit) running.push_back(i);
    }
    if (running.empty()) continue;
    Tokens missing;
    for (const std::size_t i : running) missing.push_back(left[i]);
    const auto shares = preparation_shares(missing, budget);
    for (std::size_t k = 0; k < running.size(); ++k) {
      left[running[k]] -= shares[k];
      if (left[running[k]] == 0) done[running[k]] = unit;
    }
  }
  return done;
}

TEST(PreparationShares, AShortPromptBehindALongOneIsDoneAtOnce) {
  const auto done = simulate({{0, 32'000}, {3, 50}}, 256, 8);
  EXPECT_EQ(done[1], 3) << "in the unit of its arrival";
}

TEST(PreparationShares, ALongPromptIsNotStarvedByAStreamOfShortOnes) {
  std::vector<Arrival> arrivals = {{0, 32'000}};
  for (std::int64_t unit = 0; unit < 400; ++unit) {
    for (int i = 0; i < 3; ++i) arrivals.push_back({unit, 200});
  }
  const auto done = simulate(arrivals, 256, 8);
  const std::int64_t alone = 32'000 / 256;
  EXPECT_LE(done[0] + 1, 2 * alone + 8 * 2) << "at most twice its lone time, but for the one token of each other row";
}

TEST(PreparationShares, EqualLongPromptsFinishOneAfterTheOther) {
  const auto done = simulate(std::vector<Arrival>(16, {0, 1500}), 256, 16);
  const std::int64_t all = 16 * 1500 / 256;
  EXPECT_LT(done[0], all / 10);
  for (std::size_t i = 1; i < done.size(); ++i) EXPECT_GE(done[i], done[i - 1]);
  EXPECT_LT(done[7], all * 6 / 10);
}

}  // namespace
}  // namespace quern::scheduling
