// What a configuration must satisfy, whichever file it came from.
#include "quern/model/config_check.h"

#include <algorithm>
#include <cmath>

namespace quern::model {

double yarn_attention_factor(double factor) {
  return factor <= 1.0 ? 1.0 : 0.1 * std::log(factor) + 1.0;
}

double longrope_attention_factor(double factor, std::int64_t original_context) {
  if (factor <= 1.0 || original_context < 2) return 1.0;
  return std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original_context)));
}

namespace {

Result<void> check_heads(const ModelConfig& config, std::string_view name) {
  if (config.heads % config.kv_heads != 0) {
    return fail(ErrorCode::kInvalidFile, "{}: {} attention heads aren't a multiple of {} key-value heads", name,
                config.heads, config.kv_heads);
  }
  if (std::int64_t{config.heads} * config.head_dim > kMaxWidth) {
    return fail(ErrorCode::kInvalidFile, "{}: {} heads of {} are wider than {}", name, config.heads, config.head_dim,
                kMaxWidth);
  }
  if (!(config.rope_theta > 1.0)) {
    return fail(ErrorCode::kInvalidFile, "{}: rope theta is {}, expected more than 1", name, config.rope_theta);
  }
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0 || config.rotary_dim > config.head_dim) {
    return fail(ErrorCode::kInvalidFile, "{}: rotary width {} must be even and within the head size {}", name,
                config.rotary_dim, config.head_dim);
  }
  return {};
}

Result<void> check_factors(const std::vector<double>& factors, std::string_view what, std::int32_t rotary_dim,
                           std::string_view name) {
  if (factors.size() != static_cast<std::size_t>(rotary_dim / 2)) {
    return fail(ErrorCode::kInvalidFile, "{}: {} has {} values, expected {} (half the rotary width)", name, what,
                factors.size(), rotary_dim / 2);
  }
  if (!std::ranges::all_of(factors, [](double f) { return std::isfinite(f) && f > 0.0; })) {
    return fail(ErrorCode::kInvalidFile, "{}: {} holds a value that isn't a positive number", name, what);
  }
  return {};
}

Result<void> check_scaling(const ModelConfig& config, std::string_view name) {
  using Kind = RopeScaling::Kind;
  const RopeScaling& scaling = config.rope_scaling;
  const auto out_of = [&](std::string_view field, double value, std::string_view range) {
    return fail(ErrorCode::kInvalidFile, "{}: rope scaling: {} is {}, expected {}", name, field, value, range);
  };
  if (!(scaling.factor >= 1.0 && scaling.factor <= 1e6)) return out_of("factor", scaling.factor, "1 to 1000000");
  if (!(scaling.attention_factor > 0.0 && scaling.attention_factor <= 1e3)) {
    return out_of("attention_factor", scaling.attention_factor, "above 0, at most 1000");
  }
  if (scaling.kind != Kind::kNone && scaling.kind != Kind::kLinear &&
      (scaling.original_context < 1 || scaling.original_context > kMaxContext)) {
    return out_of("original context", static_cast<double>(scaling.original_context), "1 to 2^28");
  }
  if (scaling.kind == Kind::kDynamic && config.rotary_dim < 4) {
    return out_of("rotary width of dynamic", config.rotary_dim, "at least 4");
  }
  if (scaling.kind == Kind::kLlama3 && scaling.divisors.empty() &&
      !(scaling.low_freq_factor > 0.0 && scaling.high_freq_factor > scaling.low_freq_factor)) {
    return out_of("high_freq_factor", scaling.high_freq_factor,
                  fmt::format("more than low_freq_factor {}, which is above 0", scaling.low_freq_factor));
  }
  if (scaling.kind == Kind::kYarn && !(scaling.beta_slow > 0.0 && scaling.beta_fast >= scaling.beta_slow)) {
    return out_of("beta_fast", scaling.beta_fast,
                  fmt::format("at least beta_slow {}, which is above 0", scaling.beta_slow));
  }
  if (scaling.kind == Kind::kLongrope) {
    QUERN_TRY(check_factors(scaling.short_factor, "short_factor", config.rotary_dim, name));
    QUERN_TRY(check_factors(scaling.long_factor, "long_factor", config.rotary_dim, name));
  }
  if (!scaling.divisors.empty()) {
    QUERN_TRY(check_factors(scaling.divisors, "rope_freqs", config.rotary_dim, name));
  }
  return {};
}

}  // namespace

Result<ModelConfig> checked_config(ModelConfig config, std::string_view name) {
  QUERN_TRY(check_heads(config, name));
  QUERN_TRY(check_scaling(config, name));
  if (!config.layer_without_rope.empty() &&
      config.layer_without_rope.size() != static_cast<std::size_t>(config.layers)) {
    return fail(ErrorCode::kInvalidFile, "{}: no_rope_layers has {} values for {} layers", name,
                config.layer_without_rope.size(), config.layers);
  }
  if (config.attention_scale == 0.0F) {
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  }
  return config;
}

}  // namespace quern::model
