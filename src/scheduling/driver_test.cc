// The driver's twelve steps, each sentence of its contract on a scripted group and a virtual clock.
#include "quern/scheduling/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace quern::scheduling {
namespace {

using testing::ElementsAre;
using Calls = std::vector<std::string>;

class VirtualClock final : public SchedulingClock {
 public:
  [[nodiscard]] Clock::TimePoint now() const override { return time; }
  void yield() override {
    if (on_yield) on_yield();
  }
  Clock::TimePoint time;
  std::function<void()> on_yield;
};

// A group whose every answer is a field and whose every unit is a hook; it logs what the driver does to it.
class ScriptedGroup final : public ExecutionGroup {
 public:
  std::int64_t active_rows = 0, most_rows = 4, waiting = 0;
  bool prepares = false, held = false, is_closed = false, burst = true;
  std::optional<std::int64_t> rows, tokens, next_tokens, most_tokens, tasks, iteration_tokens;
  std::optional<bool> more, published;
  std::optional<MixedPreparation> mixed;
  std::function<bool()> on_admit = [this] {
    --waiting;
    prepares = true;
    return true;
  };
  std::function<Result<void>()> on_advance = [] { return Result<void>(); };
  std::function<Result<void>()> on_prepare = [] { return Result<void>(); };
  std::function<Result<void>()> on_task = [] { return Result<void>(); };
  std::function<void()> on_wait = [this] { is_closed = true; };
  std::function<void()> on_acquire = [] {};
  std::function<void()> on_release_execution = [] {};
  std::function<void()> on_release_residency = [] {};
  bool needs_execution = true;
  Calls calls;
  int prunes = 0;
  Error failed_with;

  [[nodiscard]] std::int64_t active() const override { return active_rows; }
  [[nodiscard]] std::int64_t max_active() const override { return most_rows; }
  [[nodiscard]] std::int64_t queued() const override { return waiting; }
  [[nodiscard]] bool preparing() const override { return prepares; }
  [[nodiscard]] bool admission_held() const override { return held; }
  [[nodiscard]] bool closed() const override { return is_closed; }
  [[nodiscard]] bool can_burst() const override { return burst; }
  [[nodiscard]] std::optional<std::int64_t> preparing_rows() const override { return rows; }
  [[nodiscard]] std::optional<bool> can_prepare_more() const override { return more; }
  [[nodiscard]] std::optional<std::int64_t> preparing_tokens() const override { return tokens; }
  [[nodiscard]] std::optional<std::int64_t> next_preparation_tokens() const override { return next_tokens; }
  [[nodiscard]] std::optional<std::int64_t> max_preparation_tokens() const override { return most_tokens; }
  [[nodiscard]] std::optional<bool> preparation_published_output() const override { return published; }
  [[nodiscard]] std::optional<std::int64_t> pending_tasks() const override { return tasks; }
  [[nodiscard]] std::optional<MixedPreparation> mixed_preparation() const override { return mixed; }
  [[nodiscard]] std::optional<std::int64_t> max_iteration_tokens() const override { return iteration_tokens; }
  void prune_cancelled() override { ++prunes; }
  bool admit_next() override {
    const bool admitted = on_admit();
    calls.push_back(admitted ? "admit" : "refuse");
    return admitted;
  }
  Result<void> advance() override {
    calls.push_back("decode");
    return on_advance();
  }
  Result<void> advance_preparation() override {
    calls.push_back("prepare");
    return on_prepare();
  }
  Result<void> advance_mixed(std::int64_t budget) override {
    calls.push_back("mixed " + std::to_string(budget));
    return on_prepare();
  }
  Result<void> advance_task() override {
    calls.push_back("task");
    return on_task();
  }
  void fail_active(const Error& error) override {
    calls.push_back("fail_active: " + error.message);
    active_rows = 0;
  }
  void fail_all(const Error& error) override {
    calls.push_back("fail_all");
    failed_with = error;
  }
  [[nodiscard]] Result<Lease> reserve_residency() override {
    calls.push_back("reserve");
    return Lease([this] {
      calls.push_back("release residency");
      on_release_residency();
    });
  }
  [[nodiscard]] std::optional<Result<Lease>> acquire_execution() override {
    if (!needs_execution) return std::nullopt;
    calls.push_back("acquire");
    on_acquire();
    return Lease([this] {
      calls.push_back("release execution");
      on_release_execution();
    });
  }
  void wait_for_work() override {
    calls.push_back("park");
    on_wait();
  }
};

class DriverTest : public testing::Test {
 protected:
  Result<void> run() {
    clock.on_yield = [this] {
      group.calls.push_back("yield");
      if (--yields_left == 0) group.is_closed = true;
      if (then) then();
    };
    return drive(group, clock, options);
  }
  // The calls between taking the leases and giving them back.
  [[nodiscard]] Calls work() const {
    Calls out;
    for (const auto& call : group.calls) {
      if (call != "reserve" && call != "acquire" && !call.starts_with("release") && call != "fail_all")
        out.push_back(call);
    }
    return out;
  }
  ScriptedGroup group;
  VirtualClock clock;
  DriveOptions options;
  int yields_left = 1;
  std::function<void()> then;
};

TEST_F(DriverTest, AnIdleGroupParksWithoutLeases) {
  EXPECT_TRUE(run());
  EXPECT_THAT(group.calls, ElementsAre("park", "fail_all"));
  EXPECT_EQ(group.failed_with.message, "scheduler closed");
}

TEST_F(DriverTest, ResidencyComesBeforeExecutionAndBothAreTakenOnce) {
  group.active_rows = 2;
  yields_left = 3;
  EXPECT_TRUE(run());
  EXPECT_THAT(group.calls, ElementsAre("reserve", "acquire", "decode", "yield", "decode", "yield", "decode", "yield",
                                       "fail_all", "release execution", "release residency"));
  EXPECT_GE(group.prunes, 3) << "pruned at each boundary";
}

TEST_F(DriverTest, LeasesAreGivenBackBeforeParking) {
  group.active_rows = 2;
  then = [&] { group.active_rows = 0; };
  yields_left = 10;
  EXPECT_TRUE(run());
  EXPECT_THAT(group.calls, ElementsAre("reserve", "acquire", "decode", "yield", "release execution",
                                       "release residency", "park", "fail_all"));
}

TEST_F(DriverTest, AGroupWithoutDeviceLeaseRuns) {
  group.needs_execution = false;
  group.active_rows = 2;
  EXPECT_TRUE(run());
  EXPECT_THAT(group.calls, ElementsAre("reserve", "decode", "yield", "fail_all", "release residency"));
}

TEST_F(DriverTest, ClosedDuringAcquireRunsNothing) {
  group.active_rows = 1;
  group.tasks = 1;
  group.on_acquire = [&] { group.is_closed = true; };
  EXPECT_TRUE(run());
  EXPECT_THAT(group.calls, ElementsAre("reserve", "acquire", "fail_all", "release execution", "release residency"));
}

TEST_F(DriverTest, OneTaskAnIteration) {
  group.active_rows = 2;
  group.tasks = 2;
  group.on_task = [&]() -> Result<void> {
    --*group.tasks;
    return {};
  };
  yields_left = 3;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("task", "decode", "yield", "task", "decode", "yield", "decode", "yield"));
}

TEST_F(DriverTest, CloseIsSeenAfterATask) {
  group.active_rows = 1;
  group.tasks = 1;
  group.on_task = [&]() -> Result<void> {
    group.is_closed = true;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("task"));
}

TEST_F(DriverTest, AHoldStopsTasksAndAdmissionAndLetsRowsFinish) {
  group.active_rows = 2;
  group.waiting = 3;
  group.tasks = 1;
  group.held = true;
  yields_left = 4;
  then = [&] { --group.active_rows; };
  group.on_wait = [&] { group.is_closed = true; };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "yield", "decode", "yield", "park")) << "a held group with a queue parks";
}

TEST_F(DriverTest, AHoldThatBeginsDuringATaskStopsAdmission) {
  group.active_rows = 2;
  group.waiting = 1;
  group.tasks = 1;
  group.on_task = [&]() -> Result<void> {
    group.held = true;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("task", "decode", "yield"));
}

TEST_F(DriverTest, AHoldDuringPreparationLetsItGoOn) {
  group.prepares = true;
  group.held = true;
  group.waiting = 1;
  group.on_prepare = [&]() -> Result<void> {
    group.prepares = false;
    group.active_rows = 1;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("prepare", "decode", "yield"));
}

TEST_F(DriverTest, NothingIsAdmittedWithoutRoom) {
  group.active_rows = 4;
  group.waiting = 1;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "yield"));
}

TEST_F(DriverTest, PreparationGrowsWhileEachConditionHolds) {
  group.active_rows = 1;
  group.waiting = 9;
  group.more = true;
  group.tokens = 0;
  group.next_tokens = 100;
  group.most_tokens = 250;
  group.mixed = MixedPreparation{};
  group.on_admit = [&] {
    --group.waiting;
    group.prepares = true;
    group.rows = group.rows.value_or(0) + 1;
    *group.tokens += 100;
    return true;
  };
  EXPECT_TRUE(run());
  EXPECT_EQ(*group.rows, 2) << "a third row would be 300 tokens of 250";

  const auto grown = [&](const std::function<void()>& change) {
    group.is_closed = false;
    group.prepares = false;
    group.rows = std::nullopt;
    group.tokens = 0;
    group.most_tokens = std::nullopt;
    group.waiting = 9;
    group.held = false;
    group.burst = true;
    group.more = true;
    yields_left = 1;
    change();
    EXPECT_TRUE(run());
    return group.rows.value_or(0);
  };
  EXPECT_EQ(grown([] {}), 3) << "four rows at most, one of them decodes";
  EXPECT_EQ(grown([&] { group.burst = false; }), 1);
  EXPECT_EQ(grown([&] { group.more = std::nullopt; }), 1) << "absent = no";
  EXPECT_EQ(grown([&] { group.waiting = 2; }), 2);
  EXPECT_EQ(grown([&] { group.held = true; }), 0);
}

TEST_F(DriverTest, ARequestLargerThanThePreparationBudgetRunsAlone) {
  group.waiting = 2;
  group.more = true;
  group.most_tokens = 10;
  group.next_tokens = 1000;
  group.published = true;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("admit", "prepare", "yield"));
}

TEST_F(DriverTest, GrowthStopsAtAHeadThatIsRefused) {
  group.prepares = true;
  group.more = true;
  group.waiting = 3;
  group.published = true;
  group.on_admit = [] { return false; };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("refuse", "prepare", "yield"));
}

TEST_F(DriverTest, AMixedIterationGetsTheBudgetOrWhatTheRowsNeed) {
  group.active_rows = 3;
  group.prepares = true;
  group.mixed = MixedPreparation{3, 2};
  group.iteration_tokens = 64;
  yields_left = 2;
  then = [&] { group.iteration_tokens = 4; };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("mixed 64", "yield", "mixed 5", "yield"));
}

TEST_F(DriverTest, AnAbsentIterationBudgetIsUnlimited) {
  group.active_rows = 1;
  group.prepares = true;
  group.mixed = MixedPreparation{1, 1};
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("mixed 9223372036854775807", "yield"));
}

TEST_F(DriverTest, WithoutAPackedFormAUnitAndAStepAlternate) {
  group.active_rows = 2;
  group.prepares = true;
  yields_left = 2;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("prepare", "decode", "yield", "prepare", "decode", "yield"));
}

TEST_F(DriverTest, TheFirstTokenOfALoneRequestIsFlushedAtOnce) {
  group.prepares = true;
  group.on_prepare = [&]() -> Result<void> {
    group.prepares = false;
    group.active_rows = 1;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("prepare", "yield"));

  group.is_closed = false;
  group.prepares = true;
  group.active_rows = 0;
  group.calls.clear();
  yields_left = 1;
  options.early_first_token = false;
  group.on_advance = [&]() -> Result<void> {
    clock.time += options.lone_row_yield;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("prepare", "decode", "yield"));
}

TEST_F(DriverTest, ShortAdmissionsFinishBeforeTheNextDecode) {
  group.active_rows = 1;
  group.waiting = 2;
  group.on_prepare = [&]() -> Result<void> {
    group.prepares = false;
    ++group.active_rows;
    return {};
  };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("admit", "prepare", "admit", "prepare", "decode", "yield"));
}

TEST_F(DriverTest, AHeadThatIsRefusedAndStaysDoesNotStarveTheRows) {
  group.active_rows = 2;
  group.waiting = 1;
  group.on_admit = [] { return false; };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("refuse", "decode", "yield"));
}

TEST_F(DriverTest, ADecodeFailureHitsTheRunningRowsOnly) {
  group.active_rows = 2;
  group.on_advance = [] { return Result<void>(fail(ErrorCode::kInternal, "step")); };
  yields_left = 1;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "fail_active: step", "yield"));
}

TEST_F(DriverTest, AnExceptionIsTheUnitsError) {
  group.active_rows = 2;
  group.on_advance = []() -> Result<void> { throw std::runtime_error("thrown"); };
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "fail_active: thrown", "yield"));
}

TEST_F(DriverTest, AnyOtherErrorFailsEverythingAndGivesTheLeasesBack) {
  group.prepares = true;
  group.active_rows = 2;
  group.on_prepare = [] { return Result<void>(fail(ErrorCode::kIo, "disk")); };
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kIo);
  EXPECT_EQ(group.failed_with.message, "disk");
  EXPECT_THAT(group.calls,
              ElementsAre("reserve", "acquire", "prepare", "fail_all", "release execution", "release residency"));
}

TEST_F(DriverTest, BothReleasesAreAttemptedAndAllErrorsReportedTogether) {
  group.prepares = true;
  group.on_prepare = []() -> Result<void> { throw std::runtime_error("unit"); };
  group.on_release_execution = [] { throw std::runtime_error("one"); };
  group.on_release_residency = [] { throw std::runtime_error("two"); };
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  for (const char* part : {"unit", "one", "two"})
    EXPECT_NE(outcome.error().message.find(part), std::string::npos) << part;
}

TEST_F(DriverTest, ALoneRowYieldsEvery25Milliseconds) {
  group.active_rows = 1;
  group.on_advance = [&]() -> Result<void> {
    clock.time += std::chrono::milliseconds(10);
    return {};
  };
  yields_left = 2;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "decode", "decode", "yield", "decode", "decode", "decode", "yield"));
}

TEST_F(DriverTest, ALoneRowYieldsAtOnceWhenSomebodyWaits) {
  group.active_rows = 1;
  group.waiting = 1;
  group.most_rows = 1;
  yields_left = 2;
  EXPECT_TRUE(run());
  EXPECT_THAT(work(), ElementsAre("decode", "yield", "decode", "yield"));
}

}  // namespace
}  // namespace quern::scheduling
