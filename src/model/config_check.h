// What a configuration must satisfy, whichever file it came from.
#pragma once

#include <cstdint>
#include <string_view>

#include "quern/model/config.h"

namespace quern::model {

/// Largest values that a configuration may name; far beyond any known model, small enough that products fit 64 bits.
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxHeads = 1024;
inline constexpr std::int64_t kMaxHeadDim = 1024;
inline constexpr std::int64_t kMaxWidth = 1 << 20;
inline constexpr std::int64_t kMaxVocab = 1 << 22;
inline constexpr std::int64_t kMaxContext = 1 << 28;

/// Fills in what follows from other fields (attention_scale) and checks that they agree: head counts, rotary width,
/// factor lists. kInvalidFile with `name` and the values that contradict.
[[nodiscard]] Result<ModelConfig> checked_config(ModelConfig config, std::string_view name);

/// The factor that multiplies sine and cosine, where the file leaves it to the formula of its kind.
[[nodiscard]] double yarn_attention_factor(double factor);
[[nodiscard]] double longrope_attention_factor(double factor, std::int64_t original_context);

}  // namespace quern::model
