// The option table: precedence, places named in errors, and the rules that each row keeps.
#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace quern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() : home_(std::filesystem::path(testing::TempDir()) / ("quern-options-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directory(home_);
    variables_["QUERN_HOME"] = home_.string();
  }
  ~OptionsTest() override { std::filesystem::remove_all(home_); }

  void write_config(std::string_view text) const { std::ofstream(home_ / "config.json") << text; }
  Result<Options> resolve(const OptionValues& flags = {}) const {
    return resolve_options(flags, [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    });
  }
  std::string error(const OptionValues& flags = {}) const {
    const auto options = resolve(flags);
    if (options) return "no error";
    EXPECT_EQ(options.error().code, ErrorCode::kInvalidRequest);
    return options.error().message;
  }

  const std::filesystem::path home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(OptionsTest, DefaultsAreTheTables) {
  const auto options = resolve();
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->home, home_);
  EXPECT_EQ(options->log_level, LogLevel::kInfo);
  EXPECT_EQ(options->host, "127.0.0.1");
  EXPECT_EQ(options->port, 8080);
  EXPECT_EQ(options->shutdown_timeout_s, 30.0);
  EXPECT_EQ(options->queue, 64U);
  EXPECT_EQ(options->cpu_isa, "auto");
  EXPECT_FALSE(options->exact);
  EXPECT_FALSE(options->context);
  EXPECT_FALSE(options->kv_budget_bytes);
  EXPECT_FALSE(options->sampling.temperature);
}

TEST_F(OptionsTest, FlagThenEnvironmentThenFileThenDefault) {
  write_config(
      R"({"port": 1, "kv_budget": "1MiB", "threads": 3, "temperature": 0.5, "served_model_name": ["a", "b"]})");
  EXPECT_EQ(resolve()->port, 1);
  variables_["QUERN_PORT"] = "2";
  EXPECT_EQ(resolve()->port, 2);
  const auto options = resolve({{"port", {"9", "3"}}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->port, 3) << "the last one counts";
  EXPECT_EQ(options->kv_budget_bytes, 1U << 20U);
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->sampling.temperature, 0.5F);
  EXPECT_THAT(options->served_model_names, ElementsAre("a", "b"));
  EXPECT_THAT(resolve({{"served-model-name", {"c,d", "e"}}})->served_model_names, ElementsAre("c", "d", "e"));
}

TEST_F(OptionsTest, ErrorsNameThePlace) {
  EXPECT_THAT(error({{"port", {"70000"}}}), HasSubstr("--port: expected a whole number from 0 to 65535, got '70000'"));
  variables_["QUERN_KV_BUDGET"] = "lots";
  EXPECT_THAT(error(), HasSubstr("QUERN_KV_BUDGET: expected a size"));
  variables_.erase("QUERN_KV_BUDGET");
  write_config(R"({"top_p": 1.5})");
  EXPECT_THAT(error(), HasSubstr("'top_p': expected a number from 0 to 1, got '1.5'"));
}

TEST_F(OptionsTest, ConfigurationFileIsCheckedWhole) {
  write_config(R"({"prot": 1})");
  EXPECT_THAT(error(), HasSubstr("config.json: unknown key 'prot'; did you mean 'port'?"));
  write_config(R"({"home": "/elsewhere"})");
  EXPECT_THAT(error(), HasSubstr("unknown key 'home'")) << "the file lies in the home";
  write_config(R"({"": 1})");
  EXPECT_THAT(error(), HasSubstr("unknown key ''"));
  write_config(R"({"port": null})");
  EXPECT_THAT(error(), HasSubstr("port: expected a string, a number"));
  for (const std::string_view text : {"", "[1]", "{\"port\": 1", "{\"port\": 1} x"}) {
    write_config(text);
    EXPECT_THAT(error(), HasSubstr("config.json: expected a JSON object")) << text;
  }
}

TEST_F(OptionsTest, ConfigCanLieElsewhere) {
  EXPECT_THAT(error({{"config", {(home_ / "other.json").string()}}}), HasSubstr("other.json"));
  std::ofstream(home_ / "other.json") << R"({"port": 7})";
  write_config(R"({"port": 6})");
  EXPECT_EQ(resolve({{"config", {(home_ / "other.json").string()}}})->port, 7);
  variables_["QUERN_CONFIG"] = (home_ / "other.json").string();
  EXPECT_EQ(resolve()->port, 7);
}

TEST_F(OptionsTest, HomeFollowsTheXdgRules) {
  variables_ = {{"HOME", "/u"}};
  EXPECT_EQ(resolve()->home, "/u/.local/share/quern");
  variables_["XDG_DATA_HOME"] = "relative";
  EXPECT_EQ(resolve()->home, "/u/.local/share/quern") << "a relative one is ignored";
  variables_["XDG_DATA_HOME"] = "/x";
  EXPECT_EQ(resolve()->home, "/x/quern");
  variables_["QUERN_HOME"] = "/q";
  EXPECT_EQ(resolve()->home, "/q");
  EXPECT_EQ(resolve({{"home", {"/f"}}})->home, "/f");
  variables_.clear();
  EXPECT_THAT(error(), HasSubstr("set QUERN_HOME"));
}

TEST(OptionTable, RowsAreWellFormed) {
  std::set<std::string_view> names;
  Options options;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_NE(row.commands, 0U) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_TRUE(row.fallback.empty() || row.set(options, row.fallback)) << row.name;
  }
  const auto& budget = *std::ranges::find(option_table(), "kv-budget", &OptionRow::name);
  EXPECT_EQ(budget.flag(), "--kv-budget");
  EXPECT_EQ(budget.variable(), "QUERN_KV_BUDGET");
  EXPECT_EQ(budget.key(), "kv_budget");
}

TEST(SamplingOverrides, ChangeOnlyWhatWasSet) {
  SamplingOverrides overrides;
  overrides.temperature = 0.0F;
  overrides.top_k = 5;
  sampling::SamplingParams params;
  params.top_p = 0.9F;
  overrides.apply(params);
  EXPECT_EQ(params.temperature, 0.0F);
  EXPECT_EQ(params.top_k, 5);
  EXPECT_EQ(params.top_p, 0.9F);
}

}  // namespace
}  // namespace quern::app
