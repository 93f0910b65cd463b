// The first reason wins; late subscribers are called at once; a dropped subscription is never called.
#include "quern/base/cancellation.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace quern {
namespace {

TEST(Cancellation, TheFirstReasonWins) {
  CancellationSource source;
  const CancellationToken token = source.token();
  EXPECT_FALSE(token.cancelled());
  EXPECT_FALSE(token.reason());
  EXPECT_TRUE(source.cancel({ErrorCode::kServerClosing, "first"}));
  EXPECT_FALSE(source.cancel({ErrorCode::kCancelled, "second"}));
  ASSERT_TRUE(token.reason());
  EXPECT_EQ(token.reason()->message, "first");
  EXPECT_EQ(token.reason()->code, ErrorCode::kServerClosing);
}

TEST(Cancellation, SubscribersAreCalledOnceInOrder) {
  CancellationSource source;
  std::vector<int> calls;
  const auto one = source.token().subscribe([&](const Error&) { calls.push_back(1); });
  auto two = source.token().subscribe([&](const Error&) { calls.push_back(2); });
  const auto three = source.token().subscribe([&](const Error&) { calls.push_back(3); });
  two.reset();
  source.cancel();
  source.cancel();
  EXPECT_EQ(calls, (std::vector{1, 3}));
}

TEST(Cancellation, ALateSubscriberIsCalledAtOnce) {
  CancellationSource source;
  source.cancel({ErrorCode::kCancelled, "gone"});
  std::string seen;
  const auto late = source.token().subscribe([&](const Error& reason) { seen = reason.message; });
  EXPECT_EQ(seen, "gone");
}

TEST(Cancellation, ACallbackMaySubscribeAndDropItsOwnSubscription) {
  CancellationSource source;
  CancellationSubscription own;
  bool nested = false;
  own = source.token().subscribe([&](const Error&) {
    own.reset();
    const auto inner = source.token().subscribe([&](const Error&) { nested = true; });
  });
  source.cancel();
  EXPECT_TRUE(nested);
}

TEST(Cancellation, ResetWaitsForTheRunningCallback) {
  CancellationSource source;
  std::promise<void> entered;
  std::promise<void> leave;
  std::atomic<bool> finished{false};
  auto subscription = source.token().subscribe([&](const Error&) {
    entered.set_value();
    leave.get_future().wait();
    finished = true;
  });
  std::thread canceller([&] { source.cancel(); });
  entered.get_future().wait();
  std::thread releaser([&] { leave.set_value(); });
  subscription.reset();
  EXPECT_TRUE(finished);
  releaser.join();
  canceller.join();
}

TEST(Cancellation, ADefaultTokenIsNeverCancelled) {
  const CancellationToken token;
  EXPECT_FALSE(token.cancelled());
  const auto subscription = token.subscribe([](const Error&) { FAIL(); });
}

}  // namespace
}  // namespace quern
