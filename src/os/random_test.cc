// Two draws differ, in both halves.
#include "quern/os/random.h"

#include <gtest/gtest.h>

namespace quern::os {
namespace {

TEST(Random, DrawsDifferInBothHalves) {
  std::uint64_t changed = 0;
  for (int i = 0; i < 64; ++i) changed |= random_bits() ^ random_bits();
  EXPECT_EQ(changed, ~std::uint64_t{0}) << "every bit differs in one of 64 pairs";
}

}  // namespace
}  // namespace quern::os
