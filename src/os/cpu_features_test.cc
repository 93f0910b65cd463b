// Features are consistent with each other and with what the kernel reports.
#include "quern/os/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace quern::os {
namespace {

bool kernel_lists(const std::string& flag) {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line);
    std::string word;
    while (words >> word) {
      if (word == flag) return true;
    }
    return false;
  }
  return false;
}

TEST(CpuFeatures, AgreeWithTheKernelsList) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "x86-64 only";
#endif
  const CpuFeatures& features = cpu_features();
  EXPECT_FALSE(features.model_name.empty());
  EXPECT_EQ(features.avx2, kernel_lists("avx2") && kernel_lists("fma") && kernel_lists("f16c"));
  EXPECT_EQ(features.avx_vnni, kernel_lists("avx_vnni"));
  EXPECT_EQ(features.avx512_vnni, kernel_lists("avx512_vnni") && kernel_lists("avx512vl"));
  EXPECT_EQ(features.avx512_bf16, kernel_lists("avx512_bf16"));
  EXPECT_TRUE(!features.amx_int8 || kernel_lists("amx_int8"));
}

TEST(CpuFeatures, ThereIsACore) {
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace quern::os
