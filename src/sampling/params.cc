// Ranges of the sampling fields.
#include "quern/sampling/params.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace quern::sampling {
namespace {

constexpr float kAnyNumber = std::numeric_limits<float>::max();

std::unexpected<Error> refuse(std::string_view field, std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidRequest, fmt::format("{} {}", field, message), std::string(field)});
}

Result<void> check_range(std::string_view field, float value, float low, float high) {
  // Written so that NaN fails too.
  if (value >= low && value <= high) return {};
  if (high == kAnyNumber) return refuse(field, fmt::format("must be a number of at least {}, not {}", low, value));
  return refuse(field, fmt::format("must be between {} and {}, not {}", low, high, value));
}

Result<void> check_count(std::string_view field, std::int32_t value) {
  if (value >= 0) return {};
  return refuse(field, fmt::format("must be 0 or more, not {}", value));
}

}  // namespace

Result<void> check_params(const SamplingParams& params, std::int32_t vocab) {
  QUERN_TRY(check_range("temperature", params.temperature, 0.0F, kAnyNumber));
  QUERN_TRY(check_count("top_k", params.top_k));
  QUERN_TRY(check_range("top_p", params.top_p, 0.0F, 1.0F));
  QUERN_TRY(check_range("min_p", params.min_p, 0.0F, 1.0F));
  QUERN_TRY(check_range("xtc_probability", params.xtc_probability, 0.0F, 1.0F));
  QUERN_TRY(check_range("xtc_threshold", params.xtc_threshold, 0.0F, 0.5F));
  if (!(params.repetition_penalty > 0.0F) || std::isinf(params.repetition_penalty)) {
    return refuse("repetition_penalty", fmt::format("must be a number above 0, not {}", params.repetition_penalty));
  }
  QUERN_TRY(check_count("repetition_context", params.repetition_context));
  QUERN_TRY(check_range("presence_penalty", params.presence_penalty, -2.0F, 2.0F));
  QUERN_TRY(check_count("presence_context", params.presence_context));
  QUERN_TRY(check_range("frequency_penalty", params.frequency_penalty, -2.0F, 2.0F));
  QUERN_TRY(check_count("frequency_context", params.frequency_context));
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0 || id >= vocab) {
      return refuse("logit_bias", fmt::format("names token {}; the model has tokens 0 to {}", id, vocab - 1));
    }
    if (!(bias >= -100.0F && bias <= 100.0F)) {
      return refuse("logit_bias", fmt::format("must be between -100 and 100, not {} (token {})", bias, id));
    }
  }
  return {};
}

}  // namespace quern::sampling
