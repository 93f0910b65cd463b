// SignalWatch: signals arrive in wait(), wake() ends it.
#include "quern/os/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace quern::os {
namespace {

TEST(SignalWatch, GivesSignalsAsTheyComeThenWakes) {
  auto watch = SignalWatch::make();
  ASSERT_TRUE(watch) << watch.error().message;
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  EXPECT_EQ(watch->wait(), SIGTERM);
  ASSERT_EQ(::kill(::getpid(), SIGINT), 0);
  EXPECT_EQ(watch->wait(), SIGINT);
  watch->wake();
  EXPECT_EQ(watch->wait(), std::nullopt);
  EXPECT_EQ(watch->wait(), std::nullopt) << "for good";
}

}  // namespace
}  // namespace quern::os
