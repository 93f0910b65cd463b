// First in, first out; a waiting writer holds back later readers; every wait ends.
#include "quern/scheduling/execution_coordinator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace quern::scheduling {
namespace {

// Spins until another thread has come as far as `reached` says: progress of a thread that runs, not a guess at its
// time.
void await(const std::function<bool()>& reached) {
  while (!reached()) std::this_thread::yield();
}

TEST(ExecutionCoordinator, SharersRunTogetherAndAWriterAlone) {
  ExecutionCoordinator coordinator;
  auto one = coordinator.acquire_shared();
  auto two = coordinator.acquire_shared();
  ASSERT_TRUE(one && two);
  std::atomic<bool> writing{false};
  std::thread writer([&] {
    auto lease = coordinator.acquire_exclusive();
    EXPECT_TRUE(lease);
    writing = true;
  });
  await([&] { return coordinator.waiting() == 1; });
  EXPECT_TRUE(coordinator.exclusive_wanted());
  ASSERT_TRUE(one->release());
  EXPECT_FALSE(writing);
  ASSERT_TRUE(two->release());
  writer.join();
  EXPECT_TRUE(writing);
  EXPECT_FALSE(coordinator.exclusive_wanted());
}

TEST(ExecutionCoordinator, AWaitingWriterHoldsBackLaterReaders) {
  ExecutionCoordinator coordinator;
  auto reader = coordinator.acquire_shared();
  ASSERT_TRUE(reader);
  std::vector<int> order;
  std::thread writer([&] {
    const auto lease = coordinator.acquire_exclusive();
    order.push_back(1);
  });
  await([&] { return coordinator.waiting() == 1; });
  std::thread late([&] {
    const auto lease = coordinator.acquire_shared();
    order.push_back(2);
  });
  await([&] { return coordinator.waiting() == 2; });
  ASSERT_TRUE(reader->release());
  writer.join();
  late.join();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(ExecutionCoordinator, AWriterThatGivesUpLetsReadersPass) {
  ExecutionCoordinator coordinator;
  const auto reader = coordinator.acquire_shared();
  CancellationSource source;
  std::thread writer([&] {
    const auto lease = coordinator.acquire_exclusive(source.token());
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().message, "job cancelled");
  });
  await([&] { return coordinator.waiting() == 1; });
  std::thread late([&] { EXPECT_TRUE(coordinator.acquire_shared()); });
  await([&] { return coordinator.waiting() == 2; });
  source.cancel({ErrorCode::kCancelled, "job cancelled"});
  writer.join();
  late.join();
  EXPECT_EQ(coordinator.waiting(), 0U);
}

TEST(ExecutionCoordinator, CancelledBeforehandHoldsNothing) {
  ExecutionCoordinator coordinator;
  const auto holder = coordinator.acquire_exclusive();
  CancellationSource source;
  source.cancel();
  EXPECT_FALSE(coordinator.acquire_shared(source.token()));
  EXPECT_EQ(coordinator.waiting(), 0U);
}

TEST(ExecutionCoordinator, TheQueueIsBounded) {
  ExecutionCoordinator coordinator(1);
  auto holder = coordinator.acquire_exclusive();
  std::thread waiter([&] { EXPECT_TRUE(coordinator.acquire_shared()); });
  await([&] { return coordinator.waiting() == 1; });
  const auto refused = coordinator.acquire_shared();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  ASSERT_TRUE(holder->release());
  waiter.join();
}

TEST(ExecutionCoordinator, CloseRejectsWaitersAndKeepsHolders) {
  ExecutionCoordinator coordinator;
  auto holder = coordinator.acquire_exclusive();
  std::thread waiter([&] {
    const auto lease = coordinator.acquire_shared();
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().code, ErrorCode::kServerClosing);
  });
  await([&] { return coordinator.waiting() == 1; });
  coordinator.close();
  coordinator.close();
  waiter.join();
  EXPECT_TRUE(holder->held());
  EXPECT_TRUE(holder->release());
  EXPECT_TRUE(holder->release()) << "idempotent";
  EXPECT_FALSE(coordinator.acquire_shared());
}

TEST(ExecutionCoordinator, LeasesMayOutliveIt) {
  Lease lease;
  {
    ExecutionCoordinator coordinator;
    lease = std::move(*coordinator.acquire_shared());
  }
  EXPECT_TRUE(lease.release());
}

TEST(ExecutionCoordinator, ChangesAreAnnounced) {
  std::vector<bool> seen;  // outlives the coordinator, which announces its close too
  ExecutionCoordinator coordinator;
  coordinator.on_change([&] { seen.push_back(coordinator.exclusive_wanted()); });
  auto lease = coordinator.acquire_exclusive();
  ASSERT_TRUE(lease->release());
  EXPECT_EQ(seen, (std::vector{true, false}));
}

TEST(ExecutionCoordinator, ManyThreadsNeverShareWithAWriter) {
  ExecutionCoordinator coordinator(1024);
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        if ((t + i) % 5 == 0) {
          const auto lease = coordinator.acquire_exclusive();
          EXPECT_EQ(writers.fetch_add(1), 0);
          EXPECT_EQ(readers.load(), 0);
          --writers;
        } else {
          const auto lease = coordinator.acquire_shared();
          ++readers;
          EXPECT_EQ(writers.load(), 0);
          --readers;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(coordinator.waiting(), 0U);
  EXPECT_FALSE(coordinator.exclusive_wanted());
}

}  // namespace
}  // namespace quern::scheduling
