// Log probabilities of tokens, as a reply lists them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quern/base/result.h"

namespace quern::sampling {

struct TokenScore {
  std::int32_t id = 0;
  float logprob = 0.0F;
};

struct Logprobs {
  float logprob = 0.0F;         // of the token itself
  std::vector<TokenScore> top;  // best first, equal ones by id; those with a probability only
};

/// Log softmax of the model's own logits: before bias, penalties, temperature and filters, so that the figures describe
/// the model and not the request. Always finite. kInternal when a logit is NaN or +infinity or `token` has probability
/// 0.
[[nodiscard]] Result<Logprobs> logprobs_of(std::span<const float> logits, std::int32_t token, std::int32_t top);

}  // namespace quern::sampling
