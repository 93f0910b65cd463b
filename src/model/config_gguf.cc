// GGUF metadata to ModelConfig: the architectures that share Llama's graph.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "quern/model/config_check.h"

namespace quern::model {
namespace {

using formats::GgufFile;

/// Look-ups of "<architecture>.<key>" with ranges.
class Metadata {
 public:
  Metadata(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view name, std::int64_t low,
                                                            std::int64_t high) const {
    return file_.integer(key(name), low, high);
  }
  [[nodiscard]] Result<std::int32_t> required(std::string_view name, std::int64_t high) const {
    QUERN_ASSIGN(const auto value, integer(name, 1, high));
    if (!value) return fail(ErrorCode::kInvalidFile, "{}: {} is missing", file_.name(), key(name));
    return static_cast<std::int32_t>(*value);
  }
  [[nodiscard]] Result<double> number(std::string_view name, double low, double high, double absent) const {
    QUERN_ASSIGN(const auto value, file_.number(key(name), low, high));
    return value.value_or(absent);
  }

 private:
  const GgufFile& file_;
  std::string_view architecture_;
};

/// A small f32 tensor's values; empty when the file has none of that name.
std::vector<double> values(const GgufFile& file, std::string_view name) {
  const formats::GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return {};
  const tensor::MatrixView view = tensor->matrix();
  std::vector<float> row(static_cast<std::size_t>(view.cols));
  tensor::dequantize_row(view, 0, row.data());
  return {row.begin(), row.end()};
}

Result<void> read_scaling(const GgufFile& file, const Metadata& metadata, ModelConfig& config) {
  using Kind = RopeScaling::Kind;
  RopeScaling& scaling = config.rope_scaling;
  scaling.divisors = values(file, "rope_freqs.weight");
  scaling.short_factor = values(file, "rope_factors_short.weight");
  scaling.long_factor = values(file, "rope_factors_long.weight");

  QUERN_ASSIGN(const auto type, file.string(metadata.key("rope.scaling.type")));
  QUERN_ASSIGN(const double old_factor, metadata.number("rope.scale_linear", 1e-6, 1e6, 1.0));
  if (type.value_or("none") == "none") {
    scaling.kind = old_factor > 1.0 ? Kind::kLinear : Kind::kNone;
  } else if (*type == "linear") {
    scaling.kind = Kind::kLinear;
  } else if (*type == "yarn") {
    scaling.kind = Kind::kYarn;
  } else if (*type != "longrope") {
    return fail(ErrorCode::kUnsupportedFormat, "{}: rope scaling '{}' isn't known", file.name(), *type);
  }
  if (type.value_or("none") == "longrope" || !scaling.long_factor.empty()) scaling.kind = Kind::kLongrope;
  if (!scaling.divisors.empty() && scaling.kind == Kind::kNone) scaling.kind = Kind::kLlama3;

  QUERN_ASSIGN(const auto original, metadata.integer("rope.scaling.original_context_length", 1, kMaxContext));
  scaling.original_context = original.value_or(config.context);
  const double ratio = static_cast<double>(config.context) / static_cast<double>(scaling.original_context);
  const double absent = scaling.kind == Kind::kLongrope ? std::max(1.0, ratio) : old_factor;
  QUERN_ASSIGN(scaling.factor, metadata.number("rope.scaling.factor", 1.0, 1e6, std::max(1.0, absent)));
  if (scaling.kind == Kind::kYarn) {
    QUERN_ASSIGN(scaling.beta_fast, metadata.number("rope.scaling.yarn_beta_fast", 1e-3, 1e6, scaling.beta_fast));
    QUERN_ASSIGN(scaling.beta_slow, metadata.number("rope.scaling.yarn_beta_slow", 1e-3, 1e6, scaling.beta_slow));
    QUERN_ASSIGN(const double more, metadata.number("rope.scaling.yarn_attn_factor", 1e-3, 1e3, 1.0));
    QUERN_ASSIGN(const double mix, metadata.number("rope.scaling.yarn_ext_factor", -1e6, 1e6, 1.0));
    if (mix >= 0.0 && mix != 1.0) {  // below 0: unset
      return fail(ErrorCode::kUnsupportedFormat, "{}: rope.scaling.yarn_ext_factor {}, only 1 is known", file.name(),
                  mix);
    }
    scaling.attention_factor = more * yarn_attention_factor(scaling.factor);
  }
  if (scaling.kind == Kind::kLongrope) {
    QUERN_ASSIGN(scaling.attention_factor,
                 metadata.number("rope.scaling.attn_factor", 1e-3, 1e3,
                                 longrope_attention_factor(scaling.factor, scaling.original_context)));
  }
  return {};
}

Result<void> read_minicpm(const Metadata& metadata, ModelConfig& config) {
  // Early exports have none of these keys: the values are those of the models that they were made from.
  QUERN_ASSIGN(const double embedding, metadata.number("embedding_scale", 1e-6, 1e6, 12.0));
  QUERN_ASSIGN(const double residual, metadata.number("residual_scale", 1e-6, 1e6, 1.4 / std::sqrt(config.layers)));
  QUERN_ASSIGN(const double divisor, metadata.number("logit_scale", 1e-6, 1e6, config.hidden / 256.0));
  config.embedding_scale = static_cast<float>(embedding);
  config.residual_scale = static_cast<float>(residual);
  config.logit_scale = static_cast<float>(1.0 / divisor);
  return {};
}

Result<void> read_attention(const GgufFile& file, const Metadata& metadata, ModelConfig& config) {
  QUERN_ASSIGN(config.heads, metadata.required("attention.head_count", kMaxHeads));
  QUERN_ASSIGN(const auto kv_heads, metadata.integer("attention.head_count_kv", 1, kMaxHeads));
  config.kv_heads = static_cast<std::int32_t>(kv_heads.value_or(config.heads));
  QUERN_ASSIGN(const auto key_length, metadata.integer("attention.key_length", 1, kMaxHeadDim));
  QUERN_ASSIGN(const auto value_length, metadata.integer("attention.value_length", 1, kMaxHeadDim));
  if (!key_length && (config.hidden % config.heads != 0 || config.hidden / config.heads > kMaxHeadDim)) {
    return fail(ErrorCode::kInvalidFile, "{}: embedding_length {} over {} heads gives no head size up to {}",
                file.name(), config.hidden, config.heads, kMaxHeadDim);
  }
  config.head_dim = static_cast<std::int32_t>(key_length.value_or(config.hidden / config.heads));
  if (value_length.value_or(config.head_dim) != config.head_dim) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: keys of {} and values of {} differ", file.name(), config.head_dim,
                *value_length);
  }
  QUERN_ASSIGN(const auto rotary, metadata.integer("rope.dimension_count", 1, kMaxHeadDim));
  config.rotary_dim = static_cast<std::int32_t>(rotary.value_or(config.head_dim));
  QUERN_ASSIGN(const auto window, metadata.integer("attention.sliding_window", 0, kMaxContext));
  config.window = static_cast<std::int32_t>(window.value_or(0));
  QUERN_ASSIGN(const double scale, metadata.number("attention.scale", 0.0, 1e3, 0.0));
  config.attention_scale = static_cast<float>(scale);
  config.attention_bias = file.find_tensor("blk.0.attn_q.bias") != nullptr;
  return {};
}

}  // namespace

Result<ModelConfig> config_from_gguf(const GgufFile& file) {
  QUERN_ASSIGN(const auto architecture, file.string("general.architecture"));
  if (!architecture) return fail(ErrorCode::kInvalidFile, "{}: general.architecture is missing", file.name());
  constexpr std::array<std::string_view, 3> known = {"llama", "minicpm", "smollm3"};
  if (std::ranges::find(known, *architecture) == known.end()) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: architecture '{}' isn't known (known: llama, minicpm, smollm3)",
                file.name(), *architecture);
  }
  const Metadata metadata(file, *architecture);
  QUERN_ASSIGN(const auto experts, metadata.integer("expert_count", 0, 1 << 16));
  if (experts.value_or(0) > 0) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: a mixture of {} experts", file.name(), *experts);
  }

  ModelConfig config;
  config.architecture = *architecture;
  QUERN_ASSIGN(config.layers, metadata.required("block_count", kMaxLayers));
  QUERN_ASSIGN(config.hidden, metadata.required("embedding_length", kMaxWidth));
  QUERN_ASSIGN(config.feed_forward, metadata.required("feed_forward_length", kMaxWidth));
  QUERN_ASSIGN(const std::int32_t context, metadata.required("context_length", kMaxContext));
  config.context = context;
  const formats::GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] > kMaxVocab) {
    return fail(ErrorCode::kInvalidFile, "{}: token_embd.weight is missing or isn't [vocabulary, {}]", file.name(),
                config.hidden);
  }
  config.vocab = static_cast<std::int32_t>(embedding->shape[0]);
  QUERN_TRY(read_attention(file, metadata, config));
  QUERN_ASSIGN(config.norm_epsilon, metadata.number("attention.layer_norm_rms_epsilon", 0.0, 1.0, 1e-5));
  QUERN_ASSIGN(config.rope_theta, metadata.number("rope.freq_base", 1.0, 1e12, 10000.0));
  config.tied_embeddings = file.find_tensor("output.weight") == nullptr;
  config.mlp_bias = file.find_tensor("blk.0.ffn_up.bias") != nullptr;
  QUERN_TRY(read_scaling(file, metadata, config));
  if (*architecture == "minicpm") QUERN_TRY(read_minicpm(metadata, config));
  if (*architecture == "smollm3") {
    for (std::int32_t layer = 0; layer < config.layers; ++layer) {
      config.layer_without_rope.push_back((layer + 1) % 4 == 0);
    }
  }
  return checked_config(std::move(config), file.name());
}

}  // namespace quern::model
