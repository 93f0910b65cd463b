// Rotary frequencies of each kind of scaling, as transformers defines them.
#pragma once

#include <cstdint>
#include <vector>

#include "quern/model/config.h"

namespace quern::model {

/// What a Rope is made of, owned.
struct RopeTable {
  std::vector<float> inverse_frequency;  // [rotary_dim / 2]
  float magnitude = 1.0F;
};

/// `context` is the longest sequence that will be served. Two kinds have frequencies that depend on a sequence's length
/// in transformers: dynamic and longrope. Here that length is `context` for every sequence, so that a token's keys
/// never depend on what comes later and pages can be shared: longrope takes its long factors when context is more than
/// the original one; dynamic stretches to max(context, original).
[[nodiscard]] RopeTable rope_table(const ModelConfig& config, std::int64_t context);

}  // namespace quern::model
