// Every field's range, its edges, and the name in the error.
#include "quern/sampling/params.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace quern::sampling {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(CheckParams, AcceptsDefaultsAndEdges) {
  EXPECT_TRUE(check_params({}, 10));
  SamplingParams edge;
  edge.temperature = 0.0F;
  edge.top_k = std::numeric_limits<std::int32_t>::max();
  edge.top_p = 0.0F;
  edge.min_p = 1.0F;
  edge.xtc_probability = 1.0F;
  edge.xtc_threshold = 0.5F;
  edge.repetition_penalty = std::numeric_limits<float>::min();
  edge.presence_penalty = -2.0F;
  edge.frequency_penalty = 2.0F;
  edge.logit_bias = {{0, -100.0F}, {9, 100.0F}};
  EXPECT_TRUE(check_params(edge, 10));
}

TEST(CheckParams, NamesTheFieldThatIsOutOfRange) {
  struct Case {
    const char* field;
    std::function<void(SamplingParams&, float)> set;
    std::vector<float> wrong;
  };
  const std::vector<Case> cases = {
      {"temperature", [](auto& p, float v) { p.temperature = v; }, {-0.1F, kNan, kInfinity}},
      {"top_p", [](auto& p, float v) { p.top_p = v; }, {-0.1F, 1.1F, kNan}},
      {"min_p", [](auto& p, float v) { p.min_p = v; }, {-0.1F, 1.1F, kNan}},
      {"xtc_probability", [](auto& p, float v) { p.xtc_probability = v; }, {-0.1F, 1.1F, kNan}},
      {"xtc_threshold", [](auto& p, float v) { p.xtc_threshold = v; }, {-0.1F, 0.6F, kNan}},
      {"repetition_penalty", [](auto& p, float v) { p.repetition_penalty = v; }, {0.0F, -1.0F, kNan, kInfinity}},
      {"presence_penalty", [](auto& p, float v) { p.presence_penalty = v; }, {-2.1F, 2.1F, kNan}},
      {"frequency_penalty", [](auto& p, float v) { p.frequency_penalty = v; }, {-2.1F, 2.1F, kNan}},
      {"top_k", [](auto& p, float v) { p.top_k = static_cast<std::int32_t>(v); }, {-1.0F}},
      {"repetition_context", [](auto& p, float v) { p.repetition_context = static_cast<std::int32_t>(v); }, {-1.0F}},
      {"presence_context", [](auto& p, float v) { p.presence_context = static_cast<std::int32_t>(v); }, {-1.0F}},
      {"frequency_context", [](auto& p, float v) { p.frequency_context = static_cast<std::int32_t>(v); }, {-1.0F}},
      {"logit_bias", [](auto& p, float v) { p.logit_bias = {{1, v}}; }, {-101.0F, 101.0F, kNan}},
      {"logit_bias", [](auto& p, float v) { p.logit_bias = {{static_cast<std::int32_t>(v), 0.0F}}; }, {-1.0F, 10.0F}},
  };
  for (const Case& test : cases) {
    for (const float value : test.wrong) {
      SamplingParams params;
      test.set(params, value);
      const auto checked = check_params(params, 10);
      ASSERT_FALSE(checked) << test.field << " = " << value;
      EXPECT_EQ(checked.error().code, ErrorCode::kInvalidRequest);
      EXPECT_EQ(checked.error().param, test.field) << checked.error().message;
    }
  }
}

}  // namespace
}  // namespace quern::sampling
