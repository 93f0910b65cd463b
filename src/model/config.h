// What a decoder-only model is made of: the validated description that the graph is built from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quern/base/result.h"
#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/ops/device.h"

namespace quern::model {

/// Rotary scaling, by the names that Hugging Face gives them.
struct RopeScaling {
  enum class Kind : std::uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongrope };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  std::int64_t original_context = 0;
  double low_freq_factor = 1.0;      // llama3
  double high_freq_factor = 4.0;     // llama3
  double beta_fast = 32.0;           // yarn
  double beta_slow = 1.0;            // yarn
  double attention_factor = 1.0;     // yarn, longrope: what multiplies sine and cosine
  std::vector<double> short_factor;  // longrope, [rotary_dim / 2]
  std::vector<double> long_factor;   // longrope
  std::vector<double> divisors;      // [rotary_dim / 2] or empty: llama3 as GGUF keeps it, worked out already
};

struct ModelConfig {
  std::string architecture;  // as the file names it: "llama", "mistral", ...
  std::int32_t layers = 0;
  std::int32_t hidden = 0;        // E
  std::int32_t feed_forward = 0;  // F
  std::int32_t heads = 0;         // H
  std::int32_t kv_heads = 0;      // G
  std::int32_t head_dim = 0;      // D
  std::int32_t vocab = 0;         // V
  std::int64_t context = 0;       // longest sequence, scaling included
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  std::int32_t rotary_dim = 0;  // <= head_dim (partial rotary)
  RopeScaling rope_scaling;
  std::int32_t window = 0;               // sliding window, 0 = none
  std::vector<bool> layer_without_rope;  // SmolLM3's NoPE layers; empty = none
  bool tied_embeddings = false;
  bool attention_bias = false;  // on q, k, v and output
  bool mlp_bias = false;
  ops::Activation activation = ops::Activation::kSilu;
  float embedding_scale = 1.0F;  // MiniCPM, Granite
  float residual_scale = 1.0F;
  float logit_scale = 1.0F;
  float attention_scale = 0.0F;  // multiplies q.k
};

/// From config.json. kUnsupportedFormat names a model_type or rope scaling that isn't known; kInvalidFile a field that
/// is out of range or contradicts another.
[[nodiscard]] Result<ModelConfig> config_from_hf(const formats::HfConfig& config);
/// From GGUF metadata; the same errors.
[[nodiscard]] Result<ModelConfig> config_from_gguf(const formats::GgufFile& file);

}  // namespace quern::model
