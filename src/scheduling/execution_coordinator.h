// ExecutionCoordinator: who may use the device. Serving shares it, a job takes it alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/scheduling/lease.h"

namespace quern::scheduling {

/// A first-in-first-out reader/writer lease, thread-safe. A waiting writer holds back later readers. Leases may outlive
/// it.
class ExecutionCoordinator {
 public:
  explicit ExecutionCoordinator(std::size_t queue_limit = 64);
  ~ExecutionCoordinator();  // closes
  ExecutionCoordinator(const ExecutionCoordinator&) = delete;
  ExecutionCoordinator& operator=(const ExecutionCoordinator&) = delete;

  /// Both wait their turn. kQueueFull when `queue_limit` wait already, kServerClosing once closed, the cancellation's
  /// own reason when it fires first; nothing is held then.
  [[nodiscard]] Result<Lease> acquire_shared(const CancellationToken& cancellation = {});
  [[nodiscard]] Result<Lease> acquire_exclusive(const CancellationToken& cancellation = {});

  /// A writer waits or runs: sharers should drain.
  [[nodiscard]] bool exclusive_wanted() const;
  /// Called with no lock held, from whichever thread changed it, after exclusive_wanted() may have changed. For
  /// wake-ups.
  void on_change(std::function<void()> callback);
  [[nodiscard]] std::size_t waiting() const;

  /// Refuses what waits and what comes. What is held stays held. Idempotent.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace quern::scheduling
