// The bound holds, close drains, waiters wake.
#include "quern/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace quern {
namespace {

TEST(BoundedQueue, RefusesWhenFullAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_TRUE(second) << "a refused item is left as it was";
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_FALSE(queue.try_pop());
}

TEST(BoundedQueue, CloseDrainsThenEnds) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  queue.close();
  queue.close();
  EXPECT_FALSE(queue.try_push(3));
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_FALSE(queue.pop());
}

TEST(BoundedQueue, KeepsTheOrderAcrossThreads) {
  BoundedQueue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(queue.push(int{i}));
    queue.close();
  });
  std::vector<int> seen;
  while (const auto item = queue.pop()) {
    EXPECT_LE(queue.size(), queue.capacity());
    seen.push_back(*item);
  }
  producer.join();
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
}

TEST(BoundedQueue, CloseWakesAWaitingProducer) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.try_push(1));
  std::thread producer([&] { EXPECT_FALSE(queue.push(2)); });
  queue.close();
  producer.join();
}

}  // namespace
}  // namespace quern
