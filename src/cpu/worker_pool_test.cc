// Every chunk runs once, whatever the threads do.
#include "quern/cpu/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace quern::cpu {
namespace {

TEST(WorkerPool, RunsEachChunkOnce) {
  for (const int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t chunks : {0, 1, 2, 7, 1000}) {
      std::vector<int> times(static_cast<std::size_t>(chunks));
      pool.run(chunks, [&](std::int64_t chunk) { ++times[static_cast<std::size_t>(chunk)]; });
      EXPECT_EQ(std::count(times.begin(), times.end(), 1), chunks);
    }
  }
}

TEST(WorkerPool, ResultsOfOneRunAreSeenByTheNext) {
  WorkerPool pool(3);
  std::vector<std::int64_t> values(64);
  for (int round = 0; round < 2000; ++round) {
    // Each chunk reads what another thread may have written in the round before.
    std::vector<std::int64_t> next(values.size());
    pool.run(64, [&](std::int64_t i) {
      next[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>((i + 17) % 64)] + 1;
    });
    values = next;
  }
  EXPECT_THAT(values, testing::Each(2000));
}

TEST(WorkerPool, OthersComputeWhileOneChunkIsHeld) {
  WorkerPool pool(2);
  std::latch second_ran(1);
  // The chunk that is taken first ends only after the other has run: two threads must be at work.
  pool.run(2, [&](std::int64_t chunk) {
    if (chunk == 0) {
      second_ran.wait();
    } else {
      second_ran.count_down();
    }
  });
}

TEST(WorkerPool, WakesWhatHasParked) {
  WorkerPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::latch both(2);
    // Long past the spin time without a sleep: a thread's start and end takes about as long each.
    for (int i = 0; i < 50; ++i) std::thread([] {}).join();
    pool.run(2, [&](std::int64_t) { both.arrive_and_wait(); });
  }
}

TEST(WorkerPool, TwoCallersAtOnce) {
  WorkerPool pool(3);
  const auto sum_up = [&] {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::int64_t> parts(32);
      pool.run(32, [&](std::int64_t i) { parts[static_cast<std::size_t>(i)] = i; });
      std::int64_t total = 0;
      for (const std::int64_t part : parts) total += part;
      ASSERT_EQ(total, 32 * 31 / 2);
    }
  };
  std::thread other(sum_up);
  sum_up();
  other.join();
}

}  // namespace
}  // namespace quern::cpu
