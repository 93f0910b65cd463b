// Threads are named, joined by their owner, and leave signals to main.
#include "quern/os/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <csignal>

#include <array>
#include <atomic>
#include <string>

namespace quern::os {
namespace {

TEST(Thread, HasItsNameAndNoSignals) {
  std::string name;
  bool blocked = false;
  Thread thread("quern-a-rather-long-name", [&] {
    std::array<char, 32> buffer{};
    pthread_getname_np(pthread_self(), buffer.data(), buffer.size());
    name = buffer.data();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1;
  });
  thread.join();
  EXPECT_EQ(name, "quern-a-rather-");
  EXPECT_TRUE(blocked);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0) << "the maker's own mask is as before";
}

TEST(Thread, DestructionAndAssignmentJoin) {
  std::atomic<int> done{0};
  {
    Thread thread("one", [&] { ++done; });
    thread = Thread("two", [&] { ++done; });
    EXPECT_GE(done, 1);
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace quern::os
