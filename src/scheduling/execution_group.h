// ExecutionGroup: what the driver sees of a backend, and nothing else.
#pragma once

#include <cstdint>
#include <optional>

#include "quern/base/error.h"
#include "quern/base/result.h"
#include "quern/scheduling/lease.h"

namespace quern::scheduling {

/// Token demand of a packed iteration that decodes and prepares at once.
struct MixedPreparation {
  std::int64_t running_tokens = 0;              // of the rows that decode
  std::int64_t minimum_preparation_tokens = 0;  // at least one for each preparing row
};

/// A backend as bounded units of work and readiness. Queue payloads, tensors, cache merging and sampling stay inside.
///
/// Everything is called on the driver's thread but for what makes `wait_for_work` and `acquire_execution` return. An
/// exception that escapes a member is that member's error. An optional member's default means "absent".
class ExecutionGroup {
 public:
  virtual ~ExecutionGroup() = default;

  /// Rows that decode.
  [[nodiscard]] virtual std::int64_t active() const = 0;
  [[nodiscard]] virtual std::int64_t max_active() const = 0;
  /// Requests admitted to the queue that aren't preparing yet.
  [[nodiscard]] virtual std::int64_t queued() const = 0;
  /// A preparation (prefill) owner exists.
  [[nodiscard]] virtual bool preparing() const = 0;
  /// An exclusive user waits: admit nothing, run no task, let the running rows finish.
  [[nodiscard]] virtual bool admission_held() const = 0;
  /// Stop at the next boundary.
  [[nodiscard]] virtual bool closed() const = 0;
  /// The head of the queue is compatible and its KV fits: it may be admitted before the next decode. Changes nothing.
  [[nodiscard]] virtual bool can_burst() const = 0;

  /// Rows that the preparation carries; absent = 1.
  [[nodiscard]] virtual std::optional<std::int64_t> preparing_rows() const { return std::nullopt; }
  /// The preparation accepts another row before its next unit; absent = no.
  [[nodiscard]] virtual std::optional<bool> can_prepare_more() const { return std::nullopt; }
  /// Estimates that affect grouping only: what is larger than the most still runs, alone. Absent = 0, 0 and unlimited.
  [[nodiscard]] virtual std::optional<std::int64_t> preparing_tokens() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<std::int64_t> next_preparation_tokens() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<std::int64_t> max_preparation_tokens() const { return std::nullopt; }
  /// The last preparation unit published output that yielding would flush; absent = no.
  [[nodiscard]] virtual std::optional<bool> preparation_published_output() const { return std::nullopt; }
  /// Preparation tasks that borrow the execution lease between units; absent = none. Their failures are the group's
  /// own.
  [[nodiscard]] virtual std::optional<std::int64_t> pending_tasks() const { return std::nullopt; }
  /// Absent where the current work has no packed form.
  [[nodiscard]] virtual std::optional<MixedPreparation> mixed_preparation() const { return std::nullopt; }
  /// Token budget of an iteration; absent = unlimited.
  [[nodiscard]] virtual std::optional<std::int64_t> max_iteration_tokens() const { return std::nullopt; }

  /// Drops cancelled queued requests, observes cancelled rows.
  virtual void prune_cancelled() = 0;
  /// Moves the head of the queue into preparation. May reject and remove an impossible head and return false. With
  /// nothing active or preparing it gives up unpinned prefix pages first, then admits or removes: an idle group is
  /// never left with a stuck head.
  virtual bool admit_next() = 0;

  /// One bounded unit each.
  virtual Result<void> advance() = 0;
  virtual Result<void> advance_preparation() = 0;
  virtual Result<void> advance_mixed(std::int64_t token_budget);
  virtual Result<void> advance_task();

  /// The rows that were decoding fail; the group goes on.
  virtual void fail_active(const Error& error) = 0;
  /// Everything fails; terminal.
  virtual void fail_all(const Error& error) = 0;

  /// Holds the model's memory while the group isn't idle.
  [[nodiscard]] virtual Result<Lease> reserve_residency() = 0;
  /// The device lease; absent = the group needs none. Returns when the group closes.
  [[nodiscard]] virtual std::optional<Result<Lease>> acquire_execution() { return std::nullopt; }
  /// Parks until the group closes, or isn't held and a request or a task waits. A submit, the end of the hold, a
  /// cancellation and close wake it.
  virtual void wait_for_work() = 0;
};

}  // namespace quern::scheduling
