// Log softmax and the best few.
#include "quern/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quern::sampling {

Result<Logprobs> logprobs_of(std::span<const float> logits, std::int32_t token, std::int32_t top) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float best = -kInfinity;
  bool valid = true;
  for (const float logit : logits) {
    valid = valid && logit < kInfinity;
    best = std::max(best, logit);
  }
  if (!valid) return fail(ErrorCode::kInternal, "the model gave a logit that is not a number below infinity");
  if (static_cast<std::size_t>(token) >= logits.size() || logits[static_cast<std::size_t>(token)] == -kInfinity) {
    return fail(ErrorCode::kInternal, "token {} has no probability among {} logits", token, logits.size());
  }
  double sum = 0.0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - best));
  const double log_sum = static_cast<double>(best) + std::log(sum);
  const auto logprob = [&](std::int32_t id) {
    const double value = static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum;
    return static_cast<float>(std::max(value, static_cast<double>(std::numeric_limits<float>::lowest())));
  };

  Logprobs result;
  result.logprob = logprob(token);
  // `top` is small: an insertion into a sorted list that nearly every token fails to enter.
  const auto limit = static_cast<std::size_t>(std::max(top, 0));
  for (std::size_t id = 0; limit > 0 && id < logits.size(); ++id) {
    const float logit = logits[id];
    if (logit == -kInfinity || (result.top.size() == limit && logit <= result.top.back().logprob)) continue;
    if (result.top.size() == limit) result.top.pop_back();
    const auto place = std::upper_bound(result.top.begin(), result.top.end(), logit,
                                        [](float value, const TokenScore& score) { return value > score.logprob; });
    result.top.insert(place, {static_cast<std::int32_t>(id), logit});
  }
  for (TokenScore& score : result.top) score.logprob = logprob(score.id);
  return result;
}

}  // namespace quern::sampling
