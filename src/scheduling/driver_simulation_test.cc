// The driver under 10^5 random steps a seed: arrivals, lengths, cancellations, holds, tasks and failures, against what
// must hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "quern/scheduling/driver.h"

namespace quern::scheduling {
namespace {

constexpr std::int64_t kMostRows = 4;
constexpr std::int64_t kPages = 24;
constexpr std::int64_t kChunk = 8;
constexpr std::int64_t kSteps = 100'000;

struct Request {
  enum class State : std::uint8_t { kQueued, kPreparing, kActive, kFinished, kCancelled, kRejected, kFailed };
  std::int64_t id = 0;
  std::int64_t prompt = 0;
  std::int64_t output = 0;
  std::int64_t pages = 0;
  State state = State::kQueued;
  bool cancelled = false;
  std::int64_t last_advance = 0;  // count of units when the row was last advanced
};

struct Counts {
  std::int64_t finished = 0, cancelled = 0, rejected = 0, failed = 0, tasks = 0, held_drains = 0, submitted = 0;
};

// A backend of counters. Every member that the driver calls checks that it was right to call it.
class SimulatedGroup final : public ExecutionGroup {
 public:
  SimulatedGroup(std::uint32_t seed, bool packed) : random_(seed), packed_(packed) {}

  [[nodiscard]] std::int64_t active() const override { return std::ssize(active_); }
  [[nodiscard]] std::int64_t max_active() const override { return kMostRows; }
  [[nodiscard]] std::int64_t queued() const override { return std::ssize(queue_); }
  [[nodiscard]] bool preparing() const override { return !preparing_.empty(); }
  [[nodiscard]] std::optional<std::int64_t> preparing_rows() const override { return std::ssize(preparing_); }
  [[nodiscard]] std::optional<bool> can_prepare_more() const override { return packed_; }
  [[nodiscard]] std::optional<std::int64_t> pending_tasks() const override { return tasks_; }
  [[nodiscard]] bool admission_held() const override { return held_; }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] bool can_burst() const override { return !queue_.empty() && queue_.front()->pages <= free_pages_; }
  [[nodiscard]] std::optional<std::int64_t> max_iteration_tokens() const override { return kChunk; }
  [[nodiscard]] std::optional<MixedPreparation> mixed_preparation() const override {
    if (!packed_) return std::nullopt;
    return MixedPreparation{std::ssize(active_), std::ssize(preparing_)};
  }

  void prune_cancelled() override {
    const auto gone = [&](Request* request) {
      return request->cancelled && (end(*request, Request::State::kCancelled), true);
    };
    std::erase_if(queue_, gone);
    std::erase_if(preparing_, gone);
    std::erase_if(active_, gone);
  }

  bool admit_next() override {
    EXPECT_FALSE(held_) << "nothing is admitted under a hold";
    EXPECT_FALSE(queue_.empty());
    EXPECT_LT(active() + std::ssize(preparing_), kMostRows);
    Request* const head = queue_.front();
    EXPECT_FALSE(head->cancelled) << "a request cancelled while queued never starts";
    if (head->pages > kPages) {
      queue_.pop_front();
      end(*head, Request::State::kRejected);
      return false;
    }
    if (head->pages > free_pages_) return false;
    EXPECT_GT(head->id, last_admitted_) << "first come, first served";
    last_admitted_ = head->id;
    queue_.pop_front();
    free_pages_ -= head->pages;
    head->state = Request::State::kPreparing;
    preparing_.push_back(head);
    return true;
  }

  Result<void> advance() override {
    unit();
    EXPECT_FALSE(active_.empty());
    if (pick(200) == 0) return fail(ErrorCode::kInternal, "a decode failure");
    decode();
    disturb();
    return {};
  }

  Result<void> advance_preparation() override {
    unit();
    EXPECT_FALSE(preparing_.empty());
    prepare(kChunk);
    disturb();
    return {};
  }

  Result<void> advance_mixed(std::int64_t budget) override {
    unit();
    EXPECT_TRUE(packed_);
    EXPECT_GE(budget, std::ssize(active_) + std::ssize(preparing_));
    const std::int64_t rows = active();
    decode();
    prepare(budget - rows);
    disturb();
    return {};
  }

  Result<void> advance_task() override {
    unit();
    EXPECT_FALSE(held_) << "no task runs under a hold";
    --tasks_;
    ++counts.tasks;
    disturb();
    return {};
  }

  void fail_active(const Error& /*error*/) override {
    for (Request* request : active_) end(*request, Request::State::kFailed);
    active_.clear();
  }

  void fail_all(const Error& error) override {
    fail_active(error);
    for (Request* request : preparing_) end(*request, Request::State::kFailed);
    for (Request* request : queue_) end(*request, Request::State::kFailed);
    preparing_.clear();
    queue_.clear();
  }

  [[nodiscard]] Result<Lease> reserve_residency() override {
    EXPECT_EQ(residency_++, 0);
    return Lease([this] { --residency_; });
  }
  [[nodiscard]] std::optional<Result<Lease>> acquire_execution() override {
    EXPECT_EQ(residency_, 1) << "residency comes first";
    EXPECT_EQ(execution_++, 0);
    disturb();  // the world goes on while it waits
    return Lease([this] { --execution_; });
  }

  void wait_for_work() override {
    EXPECT_EQ(execution_ + residency_, 0) << "parked with a lease";
    EXPECT_TRUE(active_.empty() && preparing_.empty());
    EXPECT_TRUE(held_ || (queue_.empty() && tasks_ == 0)) << "parked with work to do";
    if (held_) ++counts.held_drains;
    held_ = false;
    if (queue_.empty()) submit();
  }

  // Another user's doings, between any two units.
  void disturb() {
    if (pick(3) == 0 && queue_.size() < 12) submit();
    if (pick(20) == 0) cancel_one();
    if (pick(60) == 0) held_ = !held_;
    if (pick(40) == 0) ++tasks_;
    if (steps_ >= kSteps) closed_ = true;
  }

  void check_end() const {
    for (const auto& request : requests_) EXPECT_GE(request->state, Request::State::kFinished) << request->id;
    EXPECT_EQ(counts.finished + counts.cancelled + counts.rejected + counts.failed, counts.submitted);
    EXPECT_EQ(free_pages_, kPages);
    EXPECT_EQ(execution_ + residency_, 0);
  }

  Counts counts;

 private:
  std::int64_t pick(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(below));
  }

  void unit() {
    EXPECT_EQ(execution_, 1) << "a unit without the device lease";
    EXPECT_EQ(residency_, 1);
    ++steps_;
  }

  void submit() {
    auto request = std::make_unique<Request>();
    request->id = ++counts.submitted;
    request->prompt = 1 + (pick(10) == 0 ? pick(200) : pick(12));
    request->output = 1 + pick(10);
    request->pages = pick(50) == 0 ? kPages + 1 : 1 + pick(kPages / 2);
    queue_.push_back(request.get());
    requests_.push_back(std::move(request));
  }

  void cancel_one() {
    std::vector<Request*> alive(queue_.begin(), queue_.end());
    alive.insert(alive.end(), preparing_.begin(), preparing_.end());
    alive.insert(alive.end(), active_.begin(), active_.end());
    if (!alive.empty()) alive[static_cast<std::size_t>(pick(std::ssize(alive)))]->cancelled = true;
  }

  void decode() {
    for (Request* request : active_) {
      // Without a packed form: one preparation unit for each row that may have joined since, and one task each.
      const std::int64_t most = packed_ ? 2 : 2 + 2 * kMostRows;
      EXPECT_LE(steps_ - request->last_advance, most) << "a running row stalled";
      request->last_advance = steps_;
      --request->output;
    }
    std::erase_if(active_, [&](Request* request) {
      return request->output == 0 && (end(*request, Request::State::kFinished), true);
    });
  }

  void prepare(std::int64_t tokens) {
    if (pick(300) == 0) {  // a prefill failure hits the preparing rows only
      for (Request* request : preparing_) end(*request, Request::State::kFailed);
      preparing_.clear();
      return;
    }
    for (Request* request : preparing_) {
      const std::int64_t share = std::min(request->prompt, std::max<std::int64_t>(1, tokens / std::ssize(preparing_)));
      request->prompt -= share;
      if (request->prompt > 0) continue;
      request->state = Request::State::kActive;
      request->last_advance = steps_;
      active_.push_back(request);
    }
    std::erase_if(preparing_, [](const Request* request) { return request->state == Request::State::kActive; });
  }

  void end(Request& request, Request::State state) {
    EXPECT_LT(request.state, Request::State::kFinished) << "ended twice";
    if (request.state != Request::State::kQueued) free_pages_ += request.pages;
    request.state = state;
    if (state == Request::State::kFinished) ++counts.finished;
    if (state == Request::State::kCancelled) ++counts.cancelled;
    if (state == Request::State::kRejected) ++counts.rejected;
    if (state == Request::State::kFailed) ++counts.failed;
  }

  std::mt19937 random_;
  bool packed_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::deque<Request*> queue_;
  std::vector<Request*> preparing_;
  std::vector<Request*> active_;
  std::int64_t free_pages_ = kPages;
  std::int64_t tasks_ = 0;
  std::int64_t last_admitted_ = 0;
  std::int64_t steps_ = 0;
  int execution_ = 0;
  int residency_ = 0;
  bool held_ = false;
  bool closed_ = false;
};

class StillClock final : public SchedulingClock {
 public:
  explicit StillClock(SimulatedGroup& group) : group_(group) {}
  [[nodiscard]] Clock::TimePoint now() const override { return time_; }
  void yield() override {
    time_ += std::chrono::milliseconds(1);
    group_.disturb();
  }

 private:
  SimulatedGroup& group_;
  Clock::TimePoint time_;
};

class DriverSimulation : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DriverSimulation, HoldsUnderRandomWork) {
  SimulatedGroup group(GetParam(), GetParam() % 2 == 0);
  StillClock clock(group);
  const auto outcome = drive(group, clock);
  EXPECT_TRUE(outcome) << outcome.error().message;
  group.check_end();
  // The run was one that shows something.
  EXPECT_GT(group.counts.finished, 1000);
  EXPECT_GT(group.counts.cancelled, 100);
  EXPECT_GT(group.counts.rejected, 10);
  EXPECT_GT(group.counts.failed, 10);
  EXPECT_GT(group.counts.tasks, 100);
  EXPECT_GT(group.counts.held_drains, 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DriverSimulation, testing::Range(1U, 7U));

}  // namespace
}  // namespace quern::scheduling
