// The command line: what is understood, and what is said of the rest.
#include "command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string error(const std::vector<std::string>& arguments) {
  const auto invocation = parse_command_line(arguments);
  if (invocation) return "no error";
  EXPECT_EQ(invocation.error().code, ErrorCode::kInvalidRequest);
  return invocation.error().message;
}

TEST(CommandLine, FindsCommandFlagsAndArguments) {
  const auto invocation = parse_command_line({"get", "--log-level", "debug", "starter", "--home=/h"});
  ASSERT_TRUE(invocation) << invocation.error().message;
  ASSERT_NE(invocation->command, nullptr);
  EXPECT_EQ(invocation->command->name, "get");
  EXPECT_THAT(invocation->arguments, ElementsAre("starter"));
  EXPECT_THAT(invocation->flags, ElementsAre(Pair("home", ElementsAre("/h")), Pair("log-level", ElementsAre("debug"))));
}

TEST(CommandLine, AfterTwoDashesAllAreArguments) {
  const auto invocation = parse_command_line({"get", "--", "--home"});
  ASSERT_TRUE(invocation) << invocation.error().message;
  EXPECT_THAT(invocation->arguments, ElementsAre("--home"));
}

TEST(CommandLine, SaysWhatIsWrong) {
  EXPECT_THAT(error({}), HasSubstr("no command given"));
  EXPECT_THAT(error({"gte"}), HasSubstr("unknown command 'gte'; did you mean 'get'?"));
  EXPECT_THAT(error({"--port"}), HasSubstr("unknown option '--port'"));
  EXPECT_THAT(error({"get", "starter", "--hom", "x"}),
              HasSubstr("unknown option '--hom' of get; did you mean '--home'?"));
  EXPECT_THAT(error({"get", "starter", "--port=1"}), HasSubstr("unknown option '--port' of get"));
  EXPECT_THAT(error({"get"}), HasSubstr("usage: quern get starter"));
  EXPECT_THAT(error({"get", "starter", "more"}), HasSubstr("usage: quern get starter"));
  EXPECT_THAT(error({"get", "starter", "--home"}), HasSubstr("--home"));
}

TEST(CommandLine, HelpAndVersionAreTexts) {
  EXPECT_THAT(parse_command_line({"--version"})->text, testing::MatchesRegex("quern [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const auto overview = parse_command_line({"--help"});
  for (const CommandRow& row : command_table()) EXPECT_THAT(overview->text, HasSubstr(std::string(row.name)));
  for (const CommandRow& command : command_table()) {
    const auto help = parse_command_line({std::string(command.name), "--help"});
    ASSERT_TRUE(help) << command.name;
    EXPECT_EQ(help->command, nullptr);
    for (const OptionRow& row : option_table()) {
      const bool listed = help->text.find("  " + row.flag() + " ") != std::string::npos;
      EXPECT_EQ(listed, (row.commands & command.bit) != 0) << command.name << " " << row.flag();
    }
  }
}

}  // namespace
}  // namespace quern::app
