// The figures are of the right magnitude and move when memory is touched.
#include "quern/os/memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace quern::os {
namespace {

TEST(Memory, StatusIsConsistent) {
  const MemoryStatus status = memory_status();
  EXPECT_GT(status.total_bytes, 64U << 20);
  EXPECT_GT(status.available_bytes, 0U);
  EXPECT_LE(status.available_bytes, status.total_bytes);
}

TEST(Memory, ResidentBytesFollowUse) {
  const auto before = resident_bytes();
  std::vector<char> touched(64 << 20, 1);
  EXPECT_GE(resident_bytes(), before + (60U << 20)) << static_cast<int>(touched[touched.size() / 2]);
  EXPECT_GE(peak_resident_bytes(), resident_bytes());
}

}  // namespace
}  // namespace quern::os
