// The driver's loop. The numbers are the steps of the contract.
#include "quern/scheduling/driver.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

namespace quern::scheduling {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// A unit's error, whichever way it comes.
template <class Unit>
Result<void> run(Unit unit) {
  try {
    return unit();
  } catch (const std::exception& exception) {
    return fail(ErrorCode::kInternal, "{}", exception.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "an exception of unknown type");
  }
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

class Driver {
 public:
  Driver(ExecutionGroup& group, SchedulingClock& clock, const DriveOptions& options)
      : group_(group), clock_(clock), options_(options), last_yield_(clock.now()) {}

  Result<void> loop() {
    while (!group_.closed()) QUERN_TRY(iterate());
    return {};
  }

  // 12. Everything fails, then both leases go back; each is attempted whatever the others do.
  Result<void> finish(Result<void> outcome) {
    const Error reason = outcome ? options_.close_reason : outcome.error();
    std::string trouble;
    const auto note = [&](const Result<void>& result) {
      if (!result) trouble += "; " + result.error().message;
    };
    note(run([&]() -> Result<void> {
      group_.fail_all(reason);
      return {};
    }));
    note(execution_.release());
    note(residency_.release());
    if (trouble.empty()) return outcome;
    return fail(Error{reason.code, reason.message + trouble, reason.param});
  }

 private:
  Result<void> iterate() {
    group_.prune_cancelled();  // 1
    held_ = group_.admission_held();
    if (idle()) return park();  // 2
    QUERN_TRY(take_leases());   // 3
    if (group_.closed()) return {};
    if (!held_ && pending_tasks() > 0) {  // 4
      QUERN_TRY(group_.advance_task());
      if (group_.closed()) return {};
      group_.prune_cancelled();
      held_ = group_.admission_held();
    }
    const bool refused = !group_.preparing() && may_admit() && !group_.admit_next();  // 5
    grow_preparation();                                                               // 6
    if (group_.preparing()) {
      if (const auto demand = group_.mixed_preparation(); demand && group_.active() > 0) {  // 7
        const std::int64_t least = saturating_add(demand->running_tokens, demand->minimum_preparation_tokens);
        QUERN_TRY(group_.advance_mixed(std::max(group_.max_iteration_tokens().value_or(kUnlimited), least)));
        return yield();
      }
      const bool alone = group_.active() == 0;  // 8
      QUERN_TRY(group_.advance_preparation());
      const bool first_token =
          options_.early_first_token && alone && group_.active() == 1 && !group_.preparing() && group_.queued() == 0;
      if (first_token || group_.preparation_published_output().value_or(false)) return yield();
    }
    // 9. A head that was refused and still stands mustn't keep the rows from decoding.
    if (!refused && !group_.preparing() && may_admit() && group_.can_burst()) return {};
    if (group_.active() > 0) {  // 10
      if (const auto step = run([&] { return group_.advance(); }); !step) group_.fail_active(step.error());
    }
    if (lone_row() && clock_.now() - last_yield_ < options_.lone_row_yield) return {};  // 11
    return yield();
  }

  [[nodiscard]] std::int64_t pending_tasks() const { return group_.pending_tasks().value_or(0); }

  [[nodiscard]] bool idle() const {
    if (group_.active() > 0 || group_.preparing()) return false;
    return held_ || (group_.queued() == 0 && pending_tasks() == 0);
  }

  [[nodiscard]] bool lone_row() const {
    return group_.active() == 1 && group_.queued() == 0 && !group_.preparing() && !held_;
  }

  [[nodiscard]] std::int64_t rows() const {
    return group_.active() + (group_.preparing() ? group_.preparing_rows().value_or(1) : 0);
  }

  [[nodiscard]] bool may_admit() const { return !held_ && group_.queued() > 0 && rows() < group_.max_active(); }

  void grow_preparation() {
    while (group_.preparing() && group_.can_prepare_more().value_or(false) && may_admit() && group_.can_burst() &&
           saturating_add(group_.preparing_tokens().value_or(0), group_.next_preparation_tokens().value_or(0)) <=
               group_.max_preparation_tokens().value_or(kUnlimited)) {
      if (!group_.admit_next()) return;
    }
  }

  Result<void> park() {
    const auto execution = execution_.release();
    QUERN_TRY(residency_.release());
    QUERN_TRY(execution);
    group_.wait_for_work();
    return {};
  }

  Result<void> take_leases() {
    if (!residency_.held()) {
      QUERN_ASSIGN(residency_, group_.reserve_residency());
    }
    if (execution_.held() || group_.closed()) return {};
    if (auto lease = group_.acquire_execution()) {
      if (!*lease && group_.closed()) return {};  // the wait ended because the group did
      QUERN_ASSIGN(execution_, std::move(*lease));
      group_.prune_cancelled();  // the wait may have been long
      held_ = group_.admission_held();
    }
    return {};
  }

  Result<void> yield() {
    clock_.yield();
    last_yield_ = clock_.now();
    return {};
  }

  ExecutionGroup& group_;
  SchedulingClock& clock_;
  const DriveOptions& options_;
  Clock::TimePoint last_yield_;
  bool held_ = false;
  Lease residency_;
  Lease execution_;
};

}  // namespace

Result<void> drive(ExecutionGroup& group, SchedulingClock& clock, const DriveOptions& options) {
  Driver driver(group, clock, options);
  return driver.finish(run([&] { return driver.loop(); }));
}

}  // namespace quern::scheduling
