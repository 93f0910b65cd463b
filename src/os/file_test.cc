// Small files: the limit holds, and a failed write leaves what was there.
#include "quern/os/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace quern::os {
namespace {

namespace fs = std::filesystem;

TEST(File, WritesAndReadsBack) {
  const fs::path path = fs::path(testing::TempDir()) / "file_round";
  ASSERT_TRUE(write_file(path, "one"));
  ASSERT_TRUE(write_file(path, std::string("two\0three", 9)));
  const auto back = read_file(path, 100);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, std::string("two\0three", 9));
}

TEST(File, RefusesWhatIsLargerThanTheLimit) {
  const fs::path path = fs::path(testing::TempDir()) / "file_limit";
  ASSERT_TRUE(write_file(path, std::string(1000, 'x')));
  EXPECT_TRUE(read_file(path, 1000));
  const auto refused = read_file(path, 999);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidFile);
}

TEST(File, AFailedWriteLeavesNoTrace) {
  const fs::path folder = fs::path(testing::TempDir()) / "file_none";
  fs::remove_all(folder);
  EXPECT_FALSE(write_file(folder / "x", "y"));
  fs::create_directories(folder / "taken");
  EXPECT_FALSE(write_file(folder / "taken", "y")) << "a folder stands there";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << "no temporary file is left";
}

}  // namespace
}  // namespace quern::os
