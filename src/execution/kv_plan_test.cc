// The budget's arithmetic: each limit binds in turn, and what can't be is refused with its figures.
#include "quern/execution/kv_plan.h"

#include <gtest/gtest.h>

namespace quern::execution {
namespace {

/// 1,000 bytes a page; 75 % of 1,000,000 less 50,000 = 700 pages.
KvPlanInput input() {
  return {.model_context = 8192,
          .available_bytes = 1'000'000,
          .weight_bytes = 40'000,
          .transient_bytes = 10'000,
          .page_bytes = 1'000};
}

TEST(KvPlan, ThreeQuartersOfMemoryLessWhatTheModelTakes) {
  const auto plan = plan_kv(input()).value();
  EXPECT_EQ(plan.budget_bytes, 700'000U);
  EXPECT_EQ(plan.context, 8192);
  EXPECT_EQ(plan.pages, 700);
}

TEST(KvPlan, TheControlGroupsLimitCounts) {
  KvPlanInput limited = input();
  limited.limit_bytes = 200'000;
  EXPECT_EQ(plan_kv(limited)->budget_bytes, 100'000U);
  limited.limit_bytes = 9'000'000;
  EXPECT_EQ(plan_kv(limited)->budget_bytes, 700'000U);
}

TEST(KvPlan, TheContextIsWhatFitsBesideOnePageForACopy) {
  KvPlanInput small = input();
  small.asked_kv_bytes = 101'000;
  EXPECT_EQ(plan_kv(small)->context, 1600);
  EXPECT_EQ(plan_kv(small)->pages, 101);
  small.asked_context = 100;
  EXPECT_EQ(plan_kv(small)->context, 100);
}

TEST(KvPlan, NoMorePagesThanAllRowsCouldUse) {
  KvPlanInput large = input();
  large.asked_kv_bytes = 1ULL << 50;
  EXPECT_EQ(plan_kv(large)->pages, 512 * 32 + 1);
  large.asked_context = 17;
  EXPECT_EQ(plan_kv(large)->pages, 2 * 32 + 1);
}

TEST(KvPlan, RefusesAContextThatTheModelDoesNotHave) {
  for (const std::int64_t asked : {-1, 0, 15, 8193}) {
    KvPlanInput wrong = input();
    wrong.asked_context = asked;
    const auto plan = plan_kv(wrong);
    ASSERT_FALSE(plan) << asked;
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(plan.error().param, "context");
  }
}

TEST(KvPlan, RefusesWhereNothingFits) {
  KvPlanInput heavy = input();
  heavy.weight_bytes = 2'000'000;
  KvPlanInput little = input();
  little.asked_kv_bytes = 1'999;
  KvPlanInput empty = input();
  empty.available_bytes = 0;
  for (const KvPlanInput& poor : {heavy, little, empty}) {
    const auto plan = plan_kv(poor);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kMemoryAdmission);
  }
}

}  // namespace
}  // namespace quern::execution
