// Rotary frequencies of each kind of scaling, as transformers defines them. Worked out in f64, rounded once.
#include "quern/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quern::model {
namespace {

std::vector<double> plain(double theta, std::int32_t rotary_dim) {
  std::vector<double> frequencies;
  for (std::int32_t i = 0; i < rotary_dim; i += 2) {
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / rotary_dim));
  }
  return frequencies;
}

/// Slow rotations are slowed by `factor`, fast ones stay, those between are blended by wavelength.
void scale_llama3(const RopeScaling& scaling, std::vector<double>& frequencies) {
  const auto original = static_cast<double>(scaling.original_context);
  const double low = scaling.low_freq_factor;
  const double high = scaling.high_freq_factor;
  for (double& frequency : frequencies) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    const double smooth = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    frequency *= (1.0 - smooth) / scaling.factor + smooth;
  }
}

/// The same idea, blended by dimension between those that turn beta_fast and beta_slow times in the original context.
void scale_yarn(const ModelConfig& config, std::vector<double>& frequencies) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto dimension = [&](double rotations) {
    const double turns = static_cast<double>(scaling.original_context) / (rotations * 2.0 * std::numbers::pi);
    return config.rotary_dim * std::log(turns) / (2.0 * std::log(config.rope_theta));
  };
  const double low = std::max(std::floor(dimension(scaling.beta_fast)), 0.0);
  const double high = std::min(std::ceil(dimension(scaling.beta_slow)), config.rotary_dim - 1.0);
  const double width = high == low ? 0.001 : high - low;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    frequencies[i] *= slowed / scaling.factor + (1.0 - slowed);
  }
}

double dynamic_theta(const ModelConfig& config, std::int64_t context) {
  const RopeScaling& scaling = config.rope_scaling;
  const double stretch =
      static_cast<double>(std::max(context, scaling.original_context)) / static_cast<double>(scaling.original_context);
  const double exponent = config.rotary_dim / (config.rotary_dim - 2.0);
  return config.rope_theta * std::pow(scaling.factor * stretch - (scaling.factor - 1.0), exponent);
}

void divide(std::vector<double>& frequencies, const std::vector<double>& divisors) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= divisors[i];
}

}  // namespace

RopeTable rope_table(const ModelConfig& config, std::int64_t context) {
  using Kind = RopeScaling::Kind;
  const RopeScaling& scaling = config.rope_scaling;
  std::vector<double> frequencies = plain(config.rope_theta, config.rotary_dim);
  RopeTable table;
  switch (scaling.kind) {
    case Kind::kNone:
      break;
    case Kind::kLinear:
      for (double& frequency : frequencies) frequency /= scaling.factor;
      break;
    case Kind::kDynamic:
      frequencies = plain(dynamic_theta(config, context), config.rotary_dim);
      break;
    case Kind::kLlama3:
      if (scaling.divisors.empty()) scale_llama3(scaling, frequencies);
      break;
    case Kind::kYarn:
      scale_yarn(config, frequencies);
      table.magnitude = static_cast<float>(scaling.attention_factor);
      break;
    case Kind::kLongrope:
      divide(frequencies, context > scaling.original_context ? scaling.long_factor : scaling.short_factor);
      table.magnitude = static_cast<float>(scaling.attention_factor);
      break;
  }
  if (!scaling.divisors.empty()) divide(frequencies, scaling.divisors);
  table.inverse_frequency.assign(frequencies.begin(), frequencies.end());
  return table;
}

}  // namespace quern::model
