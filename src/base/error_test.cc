// Each code has a row; the statuses are those of spec/http.md.
#include "quern/base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "quern/base/result.h"

namespace quern {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::kInvalidRequest, "{} is odd, expected an even number", value);
  return value / 2;
}

Result<void> quarter(int value, int& out) {
  QUERN_ASSIGN(const int first, half(value));
  QUERN_ASSIGN(out, half(first));
  return {};
}

TEST(Error, EveryCodeHasItsOwnNameAndAnErrorStatus) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_TRUE(names.insert(error_name(code)).second) << error_name(code);
    EXPECT_GE(http_status(code), 400);
    EXPECT_LT(http_status(code), 600);
  }
}

TEST(Error, StatusesOfTheSpec) {
  EXPECT_EQ(http_status(ErrorCode::kContextLengthExceeded), 400);
  EXPECT_EQ(http_status(ErrorCode::kQueueFull), 429);
  EXPECT_EQ(http_status(ErrorCode::kCancelled), 499);
  EXPECT_EQ(http_status(ErrorCode::kModelLoadFailed), 502);
  EXPECT_EQ(http_status(ErrorCode::kServerClosing), 503);
}

TEST(Result, MacrosPassValuesAndErrorsUp) {
  int out = 0;
  EXPECT_TRUE(quarter(12, out));
  EXPECT_EQ(out, 3);
  const auto failed = quarter(6, out);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidRequest);
  EXPECT_EQ(failed.error().message, "3 is odd, expected an even number");
  EXPECT_EQ(out, 3) << "unchanged on failure";
}

}  // namespace
}  // namespace quern
