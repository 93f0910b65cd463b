// Philox against the known answers of its authors' library (Random123, kat_vectors), and how draws use it.
#include "quern/sampling/random.h"

#include <gtest/gtest.h>

#include <set>

namespace quern::sampling {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DrawRandom, IsAFunctionOfSeedChoiceAndStep) {
  std::set<double> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32}) {
    for (std::uint32_t choice = 0; choice < 4; ++choice) {
      for (const std::uint64_t step : {0ULL, 1ULL, 1ULL << 32}) {
        const DrawRandom random = draw_random(seed, choice, step);
        EXPECT_EQ(random.token, draw_random(seed, choice, step).token);
        EXPECT_GE(random.token, 0.0);
        EXPECT_LT(random.token, 1.0);
        seen.insert(random.token);
        seen.insert(random.xtc);
      }
    }
  }
  EXPECT_EQ(seen.size(), 3U * 4U * 3U * 2U) << "every part of the triple counts";
}

}  // namespace
}  // namespace quern::sampling
