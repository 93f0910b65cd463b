// The starter model's real weights: load and agree with the oracle.
#include <gtest/gtest.h>

#include "quern/model/loader.h"
#include "quern/ops/reference.h"
#include "support/model_runner.h"
#include "support/starter.h"

namespace quern::model {
namespace {

TEST(StarterModel, ContinuesText) {
  const auto path = test::starter_model();
  if (!path) GTEST_SKIP() << test::kNoStarter;
  const auto device = ops::make_reference_device();
  auto model = load_model(path->string(), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  test::ModelRunner runner(**model, *device, 64);
  const std::vector<std::int32_t> tokens = {504, 3575, 282, 4649, 314};  // "The capital of France is"
  const std::vector<float> logits = runner.run(tokens, 1);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), 7042);  // " Paris"
}

}  // namespace
}  // namespace quern::model
