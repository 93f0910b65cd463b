// Home: paths, and folders that only this user reads.
#include "quern/store/home.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace quern::store {
namespace {

class HomeTest : public testing::Test {
 protected:
  HomeTest() : folder_(std::filesystem::path(testing::TempDir()) / ("quern-home-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~HomeTest() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_;
};

TEST_F(HomeTest, NamesThePathsOfTheSpecification) {
  const Home home("/h");
  EXPECT_EQ(home.config_file(), "/h/config.json");
  EXPECT_EQ(home.models(), "/h/models");
  EXPECT_EQ(home.adapters(), "/h/adapters");
  EXPECT_EQ(home.exports(), "/h/exports");
  EXPECT_EQ(home.datasets(), "/h/datasets");
  EXPECT_EQ(home.kv(), "/h/kv");
  EXPECT_EQ(home.jobs_database(), "/h/db/jobs.sqlite");
  EXPECT_EQ(home.registry_database(), "/h/db/registry.sqlite");
  EXPECT_EQ(home.job_log("job_0123456789abcdef"), "/h/jobs/job_0123456789abcdef.log");
}

TEST_F(HomeTest, MakesFoldersForThisUserOnly) {
  const auto models = Home(folder_ / "a" / "b").models();
  ASSERT_TRUE(ensure_folder(models));
  ASSERT_TRUE(ensure_folder(models)) << "again is fine";
  for (const auto& made : {folder_ / "a", folder_ / "a" / "b", models}) {
    struct stat status = {};
    ASSERT_EQ(::stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U) << made;
  }
}

TEST_F(HomeTest, SaysWhatStandsInTheWay) {
  std::ofstream(folder_ / "file") << "not a folder";
  const auto made = ensure_folder(folder_ / "file" / "models");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kIo);
  EXPECT_NE(made.error().message.find((folder_ / "file").string()), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace quern::store
