// Maps hold the file's bytes; what can't be mapped is an error that names it.
#include "quern/os/memory_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "quern/os/file.h"

namespace quern::os {
namespace {

std::filesystem::path scratch(const char* name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

TEST(MemoryMap, HoldsTheBytesAndSurvivesMoves) {
  const auto path = scratch("map_holds");
  const std::string content(100'000, 'q');
  ASSERT_TRUE(write_file(path, content));
  auto opened = MemoryMap::open(path);
  ASSERT_TRUE(opened) << opened.error().message;
  MemoryMap map = std::move(*opened);
  ASSERT_EQ(map.bytes().size(), content.size());
  map.will_need(map.bytes());
  map.drop(map.bytes());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()), content)
      << "dropped pages come back";
}

TEST(MemoryMap, AnEmptyFileHasNoBytes) {
  const auto path = scratch("map_empty");
  ASSERT_TRUE(write_file(path, ""));
  const auto map = MemoryMap::open(path);
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->bytes().empty());
}

TEST(MemoryMap, ANamedPipeIsRefusedWithoutWaiting) {
  const auto path = scratch("map_pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto map = MemoryMap::open(path);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, ErrorCode::kIo);
  EXPECT_TRUE(map.error().message.ends_with("not a regular file")) << map.error().message;
}

TEST(MemoryMap, MissingFilesAndFoldersAreNamed) {
  const auto missing = MemoryMap::open(scratch("map_missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_NE(missing.error().message.find("map_missing"), std::string::npos);
  EXPECT_FALSE(MemoryMap::open(testing::TempDir()));
}

}  // namespace
}  // namespace quern::os
