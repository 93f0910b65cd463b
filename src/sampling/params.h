// SamplingParams: everything that decides which token is drawn.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "quern/base/result.h"

namespace quern::sampling {

/// One request's sampling fields, with the values that change nothing as defaults (but for temperature).
/// Order of application: logit bias, repetition, presence and frequency penalties, then (temperature 0: the arg max,
/// equal logits: the lowest id) temperature, top-k, top-p, min-p, XTC, draw.
struct SamplingParams {
  float temperature = 1.0F;  // 0 = greedy
  std::int32_t top_k = 0;    // 0 = all
  float top_p = 1.0F;
  float min_p = 0.0F;
  float xtc_probability = 0.0F;
  float xtc_threshold = 0.1F;           // 0 to 0.5
  float repetition_penalty = 1.0F;      // > 0; over prompt and output
  std::int32_t repetition_context = 0;  // last tokens that count; 0 = all
  float presence_penalty = 0.0F;        // -2 to 2; over the output
  std::int32_t presence_context = 0;
  float frequency_penalty = 0.0F;
  std::int32_t frequency_context = 0;
  std::vector<std::pair<std::int32_t, float>> logit_bias;  // (token id, -100 to 100)
  std::uint64_t seed = 0;                                  // a draw is a function of (seed, choice, step)
};

/// kInvalidRequest whose `param` names the field that is out of range, NaN or infinite.
[[nodiscard]] Result<void> check_params(const SamplingParams& params, std::int32_t vocab);

}  // namespace quern::sampling
