// The pool's ticket, spinning and parking.
#include "quern/cpu/worker_pool.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "quern/base/check.h"

namespace quern::cpu {
namespace {

constexpr std::uint64_t kNextMask = 0xffffffffU;
constexpr auto kSpinTime = std::chrono::microseconds(60);
constexpr int kSpinsBetweenLooks = 64;  // pauses before the clock is read again

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

bool has_chunks(std::uint64_t ticket) {
  return (ticket & kNextMask) < (ticket >> 32);
}

/// Spins until `ready` or the spin time is over. Tells whether it was ready.
template <class Ready>
bool spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kSpinsBetweenLooks; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

WorkerPool::WorkerPool(int threads) {
  QUERN_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back(fmt::format("kernel-{}", i), [this] { work(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::scoped_lock lock(park_mutex_);
    stopping_.store(true);
  }
  unpark_.notify_all();
}

void WorkerPool::run_job(const Job& job, std::int64_t chunks) {
  const std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner || workers_.empty() || chunks <= 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) job.call(job.context, chunk);
    return;
  }
  QUERN_CHECK(chunks <= static_cast<std::int64_t>(kNextMask));
  job_.store(&job, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  // Sequentially consistent, as is parked_: either the worker that parks sees the chunks or we see that it parks.
  ticket_.store(static_cast<std::uint64_t>(chunks) << 32);
  if (parked_.load() > 0) {
    {
      const std::scoped_lock lock(park_mutex_);
    }
    unpark_.notify_all();
  }
  while (take_chunk()) {
  }
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == chunks; };
  while (!spin_until(all_done)) std::this_thread::yield();  // a worker that holds a chunk was descheduled
}

bool WorkerPool::take_chunk() {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (has_chunks(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const Job& job = *job_.load(std::memory_order_relaxed);
    job.call(job.context, static_cast<std::int64_t>(ticket & kNextMask));
    done_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }
  return false;
}

void WorkerPool::work() {
  const auto wanted = [&] { return has_chunks(ticket_.load(std::memory_order_relaxed)) || stopping_.load(); };
  while (!stopping_.load()) {
    while (take_chunk()) {
    }
    if (!spin_until(wanted)) park();
  }
}

void WorkerPool::park() {
  std::unique_lock lock(park_mutex_);
  parked_.fetch_add(1);
  unpark_.wait(lock, [&] { return has_chunks(ticket_.load()) || stopping_.load(); });
  parked_.fetch_sub(1);
}

}  // namespace quern::cpu
