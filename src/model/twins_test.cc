// Tiny models of random weights in every form that we read: each loads and agrees with its golden values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quern/model/loader.h"
#include "quern/ops/reference.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace quern::model {
namespace {

using test::read_golden;

std::string model_path(const std::string& twin) {
  return test::model_path(twin).string();
}

class Twin : public testing::TestWithParam<std::string> {};

TEST_P(Twin, AgreesWithItsGoldenValues) {
  const auto device = ops::make_reference_device();
  const auto model = load_model(model_path(GetParam()), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const test::Golden golden = read_golden(GetParam());
  ASSERT_TRUE(golden.values.contains("logits"));

  test::Values seen;
  test::ModelRunner runner(**model, *device, 64);
  runner.run(golden.tokens, golden.tokens.size(),
             [&](std::string_view name, ops::Mat values) { seen[std::string(name)] = test::copy(values); });
  for (const auto& [name, expected] : golden.values) {
    EXPECT_LT(test::relative_error(seen[name], expected), 1e-4) << name;
  }
}

TEST_P(Twin, GivesTheSameBitsTokenByToken) {
  const auto device = ops::make_reference_device();
  const auto model = load_model(model_path(GetParam()), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const std::vector<std::int32_t> tokens = read_golden(GetParam()).tokens;

  test::ModelRunner whole(**model, *device, 64);
  const std::vector<float> expected = whole.run(tokens, tokens.size());
  test::ModelRunner single(**model, *device, 64);
  std::vector<float> logits;
  for (const std::int32_t token : tokens) {
    const std::vector<float> row = single.run({&token, 1}, 1);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  EXPECT_EQ(logits, expected);
}

std::string test_name(const testing::TestParamInfo<std::string>& twin) {
  std::string name = twin.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, Twin, testing::ValuesIn(test::twin_names()), test_name);

TEST(Twins, AreAllThere) {
  EXPECT_EQ(test::twin_names().size(), 36U);
}

}  // namespace
}  // namespace quern::model
