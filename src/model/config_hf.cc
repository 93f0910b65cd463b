// config.json to ModelConfig, with the defaults that transformers gives each model type.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "quern/model/config_check.h"

namespace quern::model {
namespace {

using formats::HfConfig;
using formats::HfRopeScaling;

/// What a model type leaves out of its config.json when it is the default.
struct Family {
  std::string_view model_type;
  double rope_theta;
  bool tied_embeddings;
  std::int64_t no_rope_interval;  // 0: every layer rotates
};
constexpr std::array kFamilies = {
    Family{"llama", 10000.0, false, 0},
    Family{"mistral", 10000.0, false, 0},
    Family{"smollm3", 2000000.0, true, 4},
    Family{"minicpm", 10000.0, true, 0},
};

Result<const Family*> find_family(const HfConfig& hf) {
  for (const Family& family : kFamilies) {
    if (family.model_type == hf.model_type()) return &family;
  }
  return fail(ErrorCode::kUnsupportedFormat,
              "{}: model_type '{}' isn't known (known: llama, mistral, smollm3, minicpm)", hf.name(), hf.model_type());
}

Result<std::int32_t> required(const HfConfig& hf, std::string_view field, std::int64_t high) {
  QUERN_ASSIGN(const auto value, hf.integer(field, 1, high));
  if (!value) return fail(ErrorCode::kInvalidFile, "{}: {} is missing", hf.name(), field);
  return static_cast<std::int32_t>(*value);
}

Result<ops::Activation> activation(const HfConfig& hf) {
  QUERN_ASSIGN(const auto name, hf.string("hidden_act"));
  if (!name || *name == "silu") return ops::Activation::kSilu;
  if (*name == "gelu") return ops::Activation::kGelu;
  if (*name == "gelu_new" || *name == "gelu_pytorch_tanh") return ops::Activation::kGeluTanh;
  return fail(ErrorCode::kUnsupportedFormat, "{}: hidden_act '{}' isn't known", hf.name(), *name);
}

Result<RopeScaling::Kind> scaling_kind(const HfRopeScaling& rope, std::string_view name) {
  using Kind = RopeScaling::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 7> kinds = {{{"", Kind::kNone},
                                                                       {"default", Kind::kNone},
                                                                       {"linear", Kind::kLinear},
                                                                       {"dynamic", Kind::kDynamic},
                                                                       {"llama3", Kind::kLlama3},
                                                                       {"yarn", Kind::kYarn},
                                                                       {"longrope", Kind::kLongrope}}};
  for (const auto& [known, kind] : kinds) {
    if (known == rope.type) return kind;
  }
  return fail(ErrorCode::kUnsupportedFormat, "{}: rope scaling '{}' isn't known", name, rope.type);
}

std::optional<double> number(const HfRopeScaling& rope, std::string_view key) {
  const auto found = rope.numbers.find(key);
  if (found == rope.numbers.end()) return std::nullopt;
  return found->second;
}

Result<double> required(const HfRopeScaling& rope, std::string_view key, std::string_view name) {
  if (const auto value = number(rope, key)) return *value;
  return fail(ErrorCode::kInvalidFile, "{}: rope scaling '{}' needs {}", name, rope.type, key);
}

double yarn_factor(const HfRopeScaling& rope, double factor) {
  const double mscale = number(rope, "mscale").value_or(0.0);
  const double all_dim = number(rope, "mscale_all_dim").value_or(0.0);
  if (mscale == 0.0 || all_dim == 0.0 || factor <= 1.0) return yarn_attention_factor(factor);
  return (0.1 * mscale * std::log(factor) + 1.0) / (0.1 * all_dim * std::log(factor) + 1.0);
}

Result<void> read_scaling(const HfConfig& hf, const HfRopeScaling& rope, ModelConfig& config) {
  using Kind = RopeScaling::Kind;
  RopeScaling& scaling = config.rope_scaling;
  QUERN_ASSIGN(scaling.kind, scaling_kind(rope, hf.name()));
  if (scaling.kind == Kind::kNone) return {};

  // A top-level original_max_position_embeddings wins over the one inside, and the context stands in for both.
  QUERN_ASSIGN(const auto outer, hf.integer("original_max_position_embeddings", 1, kMaxContext));
  const double original =
      outer ? static_cast<double>(*outer)
            : number(rope, "original_max_position_embeddings").value_or(static_cast<double>(config.context));
  if (!(original >= 1.0 && original <= static_cast<double>(kMaxContext) && original == std::floor(original))) {
    return fail(ErrorCode::kInvalidFile, "{}: original_max_position_embeddings is {}, expected 1 to 2^28", hf.name(),
                original);
  }
  scaling.original_context = static_cast<std::int64_t>(original);

  const bool by_ratio = scaling.kind == Kind::kLongrope || scaling.kind == Kind::kYarn;
  if (by_ratio && !number(rope, "factor")) {
    scaling.factor = std::max(1.0, static_cast<double>(config.context) / original);
  } else {
    QUERN_ASSIGN(scaling.factor, required(rope, "factor", hf.name()));
  }
  switch (scaling.kind) {
    case Kind::kLlama3: {
      QUERN_ASSIGN(scaling.low_freq_factor, required(rope, "low_freq_factor", hf.name()));
      QUERN_ASSIGN(scaling.high_freq_factor, required(rope, "high_freq_factor", hf.name()));
      break;
    }
    case Kind::kYarn:
      scaling.beta_fast = number(rope, "beta_fast").value_or(scaling.beta_fast);
      scaling.beta_slow = number(rope, "beta_slow").value_or(scaling.beta_slow);
      scaling.attention_factor = number(rope, "attention_factor").value_or(yarn_factor(rope, scaling.factor));
      break;
    case Kind::kLongrope:
      scaling.short_factor = rope.short_factor;
      scaling.long_factor = rope.long_factor;
      scaling.attention_factor = number(rope, "attention_factor")
                                     .value_or(longrope_attention_factor(scaling.factor, scaling.original_context));
      break;
    case Kind::kDynamic:
      // The formula stretches from the trained context, which config.json calls max_position_embeddings.
      scaling.original_context = config.context;
      if (scaling.factor >= 1.0 && scaling.factor <= 1e6) {
        config.context =
            std::min(kMaxContext, static_cast<std::int64_t>(static_cast<double>(config.context) * scaling.factor));
      }
      break;
    case Kind::kNone:
    case Kind::kLinear:
      break;
  }
  return {};
}

Result<void> read_rope(const HfConfig& hf, const Family& family, ModelConfig& config) {
  QUERN_ASSIGN(const auto theta, hf.rope_number("rope_theta", 1.0, 1e12));
  QUERN_ASSIGN(const auto partial, hf.rope_number("partial_rotary_factor", 0.0, 1.0));
  config.rope_theta = theta.value_or(family.rope_theta);
  config.rotary_dim = static_cast<std::int32_t>(config.head_dim * partial.value_or(1.0));
  if (hf.rope_scaling()) QUERN_TRY(read_scaling(hf, *hf.rope_scaling(), config));

  if (family.no_rope_interval == 0) return {};
  QUERN_ASSIGN(const auto listed, hf.integers("no_rope_layers"));
  QUERN_ASSIGN(const auto interval, hf.integer("no_rope_layer_interval", 1, kMaxLayers));
  if (listed) {
    for (const std::int64_t rotates : *listed) config.layer_without_rope.push_back(rotates == 0);
    return {};
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    config.layer_without_rope.push_back((layer + 1) % interval.value_or(family.no_rope_interval) == 0);
  }
  return {};
}

Result<void> read_window(const HfConfig& hf, ModelConfig& config) {
  QUERN_ASSIGN(const auto window, hf.integer("sliding_window", 1, kMaxContext));
  if (config.architecture == "mistral") config.window = static_cast<std::int32_t>(window.value_or(0));
  QUERN_ASSIGN(const auto used, hf.boolean("use_sliding_window"));
  if (config.architecture == "smollm3" && used.value_or(false) && window) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: sliding windows on some layers only (use_sliding_window)",
                hf.name());
  }
  return {};
}

Result<void> read_minicpm(const HfConfig& hf, ModelConfig& config) {
  QUERN_ASSIGN(const auto embedding, hf.number("scale_emb", 1e-6, 1e6));
  QUERN_ASSIGN(const auto depth, hf.number("scale_depth", 1e-6, 1e6));
  QUERN_ASSIGN(const auto base, hf.number("dim_model_base", 1e-6, 1e9));
  config.embedding_scale = static_cast<float>(embedding.value_or(1.0));
  config.residual_scale = static_cast<float>(depth.value_or(1.0) / std::sqrt(static_cast<double>(config.layers)));
  config.logit_scale = static_cast<float>(base.value_or(1.0) / config.hidden);
  return {};
}

}  // namespace

Result<ModelConfig> config_from_hf(const HfConfig& hf) {
  QUERN_ASSIGN(const Family* family, find_family(hf));
  ModelConfig config;
  config.architecture = hf.model_type();
  QUERN_ASSIGN(config.layers, required(hf, "num_hidden_layers", kMaxLayers));
  QUERN_ASSIGN(config.hidden, required(hf, "hidden_size", kMaxWidth));
  QUERN_ASSIGN(config.feed_forward, required(hf, "intermediate_size", kMaxWidth));
  QUERN_ASSIGN(config.heads, required(hf, "num_attention_heads", kMaxHeads));
  QUERN_ASSIGN(config.vocab, required(hf, "vocab_size", kMaxVocab));
  QUERN_ASSIGN(const auto kv_heads, hf.integer("num_key_value_heads", 1, kMaxHeads));
  config.kv_heads = static_cast<std::int32_t>(kv_heads.value_or(config.heads));
  QUERN_ASSIGN(const auto head_dim, hf.integer("head_dim", 1, kMaxHeadDim));
  if (!head_dim && (config.hidden % config.heads != 0 || config.hidden / config.heads > kMaxHeadDim)) {
    return fail(ErrorCode::kInvalidFile, "{}: hidden_size {} over {} heads gives no head size up to {}", hf.name(),
                config.hidden, config.heads, kMaxHeadDim);
  }
  config.head_dim = static_cast<std::int32_t>(head_dim.value_or(config.hidden / config.heads));
  QUERN_ASSIGN(const auto context, hf.integer("max_position_embeddings", 1, kMaxContext));
  config.context = context.value_or(2048);
  QUERN_ASSIGN(const auto epsilon, hf.number("rms_norm_eps", 0.0, 1.0));
  config.norm_epsilon = epsilon.value_or(1e-6);
  QUERN_ASSIGN(const auto tied, hf.boolean("tie_word_embeddings"));
  config.tied_embeddings = tied.value_or(family->tied_embeddings);
  QUERN_ASSIGN(const auto attention_bias, hf.boolean("attention_bias"));
  config.attention_bias = attention_bias.value_or(false);
  QUERN_ASSIGN(const auto mlp_bias, hf.boolean("mlp_bias"));
  config.mlp_bias = mlp_bias.value_or(false);
  QUERN_ASSIGN(config.activation, activation(hf));
  QUERN_TRY(read_rope(hf, *family, config));
  QUERN_TRY(read_window(hf, config));
  if (config.architecture == "minicpm") QUERN_TRY(read_minicpm(hf, config));
  return checked_config(std::move(config), hf.name());
}

}  // namespace quern::model
