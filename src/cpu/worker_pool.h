// WorkerPool: chunks of one operation, spread over threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "quern/os/thread.h"

namespace quern::cpu {

/// Threads that take chunks from one atomic counter; the thread that calls `run` is one of them. Workers spin for tens
/// of microseconds after their last chunk, then park. Nobody waits for a worker that holds no chunk.
class WorkerPool {
 public:
  /// `threads` >= 1, the calling one included.
  explicit WorkerPool(int threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(chunk) once for each chunk in [0, chunks), on any thread, and returns when all have. Bodies must write
  /// to places of their own and not call `run`. While another thread's run is in progress, this one's chunks all run on
  /// the calling thread. Doesn't allocate.
  template <class Body>
  void run(std::int64_t chunks, const Body& body) {
    run_job({[](const void* context, std::int64_t chunk) { (*static_cast<const Body*>(context))(chunk); }, &body},
            chunks);
  }

 private:
  struct Job {
    void (*call)(const void* context, std::int64_t chunk);
    const void* context;
  };
  void run_job(const Job& job, std::int64_t chunks);
  bool take_chunk();
  void work();
  void park();

  // Chunks of the job in the upper half, the next to be taken in the lower. Whoever moves it by one owns that chunk,
  // and with it the right to read job_: the job can't end before the chunk has.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::int64_t> done_{0};
  alignas(64) std::atomic<const Job*> job_{nullptr};
  std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex owner_;  // held by the thread whose run is in progress
  std::mutex park_mutex_;
  std::condition_variable unpark_;
  std::vector<os::Thread> workers_;
};

}  // namespace quern::cpu
