// What a model argument means.
#include "models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "starter.h"

namespace quern::app {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class ModelsTest : public testing::Test {
 protected:
  ModelsTest() : home_(std::filesystem::path(testing::TempDir()) / ("quern-models-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(home_.root());
    std::filesystem::create_directories(home_.models());
  }
  ~ModelsTest() override { std::filesystem::remove_all(home_.root()); }

  void add(const std::filesystem::path& file) const {
    std::filesystem::create_directories((home_.models() / file).parent_path());
    std::ofstream(home_.models() / file) << "x";
  }
  std::string name_of(std::string_view argument) const {
    const auto model = find_model(home_, argument);
    return model ? model->name : model.error().message;
  }
  const store::Home home_;
};

TEST_F(ModelsTest, ListsFilesAndFolders) {
  EXPECT_TRUE(local_models(home_).empty());
  EXPECT_TRUE(local_models(store::Home("/nonexistent")).empty());
  add("b.gguf");
  add("owner/a/config.json");
  add("owner/a/part.gguf");
  add(".get-starter/half.gguf");
  add("notes.txt");
  add("empty/readme.md");
  EXPECT_THAT(local_models(home_), ElementsAre(Field(&ModelChoice::name, "b"), Field(&ModelChoice::name, "owner/a")));
}

TEST_F(ModelsTest, StarterIsTheDefault) {
  EXPECT_THAT(name_of(""), HasSubstr("quern get starter"));
  EXPECT_THAT(name_of("starter"), HasSubstr("quern get starter"));
  add(kStarterFile);
  EXPECT_EQ(name_of(""), "SmolLM2-135M-Instruct.Q4_1");
  EXPECT_EQ(name_of("starter"), "SmolLM2-135M-Instruct.Q4_1");
  EXPECT_EQ(find_model(home_, "")->path, starter_path(home_));
}

TEST_F(ModelsTest, ExactNameThenPathThenUniquePart) {
  add("alpha-7b.gguf");
  add("alpha.gguf");
  add("beta.gguf");
  EXPECT_EQ(name_of("alpha"), "alpha") << "exact, though it is part of another";
  EXPECT_EQ(name_of("bet"), "beta");
  EXPECT_EQ(name_of("7b"), "alpha-7b");
  EXPECT_EQ(name_of("alp"), "'alp' fits several models: alpha, alpha-7b");
  EXPECT_THAT(name_of("gamma"), HasSubstr("no model 'gamma'"));
  EXPECT_THAT(name_of("gamma"), HasSubstr("alpha, alpha-7b, beta"));
  EXPECT_EQ(name_of((home_.models() / "beta.gguf").string()), "beta");
  EXPECT_THAT(name_of(home_.models().string()), HasSubstr("neither a .gguf file nor a folder with a config.json"));
  EXPECT_EQ(name_of("synthetic:tiny"), "synthetic:tiny");
}

TEST_F(ModelsTest, AFolderIsNamedAfterItself) {
  add("owner/m/config.json");
  EXPECT_EQ(name_of((home_.models() / "owner" / "m" / "").string()), "m");
}

}  // namespace
}  // namespace quern::app
