// sha256_file against the values that the standard publishes.
#include "quern/os/digest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace quern::os {
namespace {

std::string digest_of(std::string_view content) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("quern-digest-" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary) << content;
  const auto digest = sha256_file(path);
  std::filesystem::remove(path);
  return digest ? *digest : digest.error().message;
}

TEST(Digest, AgreesWithTheStandard) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
      << "shorter than one read";
  EXPECT_EQ(digest_of(std::string(3'000'000, 'a')), digest_of(std::string(3'000'000, 'a'))) << "several reads";
}

TEST(Digest, SaysWhatCantBeRead) {
  const auto digest = sha256_file("/nonexistent/file");
  ASSERT_FALSE(digest);
  EXPECT_EQ(digest.error().code, ErrorCode::kIo);
  EXPECT_NE(digest.error().message.find("/nonexistent/file"), std::string::npos);
}

TEST(Digest, StopsWhenCancelled) {
  CancellationSource source;
  source.cancel();
  const auto digest = sha256_file("/proc/self/exe", source.token());
  ASSERT_FALSE(digest);
  EXPECT_EQ(digest.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace quern::os
