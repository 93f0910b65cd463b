// run_child: output, exit status, environment, cancellation.
#include "quern/os/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace quern::os {
namespace {

using testing::ElementsAre;

ChildCommand shell(std::string script, std::vector<std::string>* lines) {
  return {.argv = {"sh", "-c", std::move(script)},
          .on_line = [lines](std::string_view line) { lines->emplace_back(line); }};
}

TEST(ChildProcess, GivesLinesOfBothOutputsAndTheStatus) {
  std::vector<std::string> lines;
  const auto exit = run_child(shell("echo one; echo two >&2; printf three; exit 7", &lines));
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
  EXPECT_EQ(exit->status, 7);
  EXPECT_FALSE(exit->ok());
}

TEST(ChildProcess, TellsTheSignalThatEndedIt) {
  std::vector<std::string> lines;
  const auto exit = run_child(shell("kill -9 $$", &lines));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
  EXPECT_FALSE(exit->ok());
}

TEST(ChildProcess, AddsToTheEnvironmentAndGivesAnEmptyInput) {
  std::vector<std::string> lines;
  auto command = shell("echo \"$QUERN_TEST_WORD\"; cat; test -n \"$PATH\"", &lines);
  command.environment = {{"QUERN_TEST_WORD", "salt"}};
  const auto exit = run_child(command);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->ok());
  EXPECT_THAT(lines, ElementsAre("salt"));
}

TEST(ChildProcess, SaysThatAProgramIsMissing) {
  const auto exit = run_child({.argv = {"quern-has-no-such-program"}});
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().code, ErrorCode::kNotFound);
}

TEST(ChildProcess, CancellationEndsTheWholeGroup) {
  CancellationSource source;
  std::vector<std::string> lines;
  auto command = shell("sleep 1000 & echo $$; wait", &lines);
  command.on_line = [&](std::string_view line) {
    lines.emplace_back(line);
    source.cancel({ErrorCode::kCancelled, "enough"});
  };
  const auto exit = run_child(command, source.token());
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().message, "enough");
  ASSERT_EQ(lines.size(), 1U);
  const pid_t group = std::stoi(lines.front());
  EXPECT_EQ(::kill(group, 0), -1) << "the program is gone and reaped";
}

TEST(ChildProcess, CancelledBeforehandItEndsAtOnce) {
  CancellationSource source;
  source.cancel();
  const auto exit = run_child({.argv = {"sleep", "1000"}}, source.token());
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace quern::os
