// Hugging Face's JSON files beside a model: config.json, generation_config.json, tokenizer_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"

namespace quern::formats {

/// rope_scaling / rope_parameters, as written; the model decides which kinds it knows.
struct HfRopeScaling {
  std::string type;  // rope_type or type; "default" and absent are the same
  std::map<std::string, double, std::less<>> numbers;
  std::vector<double> short_factor;
  std::vector<double> long_factor;
};

/// MLX's "quantization" (or "quantization_config"): defaults, and per-module overrides (absent bits = not quantized).
struct HfQuantization {
  struct Module {
    std::int64_t bits = 0;  // 0: left as floats
    std::int64_t group = 0;
    std::string mode;  // "affine" or "mxfp4"
  };
  Module defaults;
  std::map<std::string, Module, std::less<>> modules;
};

/// config.json, generically: typed look-ups with range checks, so that each architecture reads what it needs.
class HfConfig {
 public:
  /// kInvalidFile names file, field (as a path) and offset. Depth, size and count are limited.
  [[nodiscard]] static Result<HfConfig> parse(std::string_view json, std::string name);
  [[nodiscard]] static Result<HfConfig> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& model_type() const { return model_type_; }
  [[nodiscard]] const std::vector<std::string>& architectures() const { return architectures_; }
  /// Nothing when absent or null; kInvalidFile when of another type or outside [low, high].
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view field, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view field, double low, double high) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view field) const;
  [[nodiscard]] Result<std::optional<std::string>> string(std::string_view field) const;
  [[nodiscard]] Result<std::optional<std::vector<std::int64_t>>> integers(std::string_view field) const;
  [[nodiscard]] const std::optional<HfRopeScaling>& rope_scaling() const { return rope_scaling_; }
  [[nodiscard]] const std::optional<HfQuantization>& quantization() const { return quantization_; }

 private:
  struct Value;  // a JSON scalar or list, without the JSON library in this header
  std::string name_;
  std::string model_type_;
  std::vector<std::string> architectures_;
  std::optional<HfRopeScaling> rope_scaling_;
  std::optional<HfQuantization> quantization_;
  std::shared_ptr<const std::map<std::string, Value, std::less<>>> fields_;
};

/// generation_config.json: the model's own defaults for sampling, and its end-of-sequence set.
struct GenerationConfig {
  std::vector<std::int32_t> eos_token_ids;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int32_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<std::int32_t> max_new_tokens;
};
[[nodiscard]] Result<GenerationConfig> parse_generation_config(std::string_view json, std::string name);

/// tokenizer_config.json and special_tokens_map.json, chat_template.jinja: what the tokenizer's loader needs beside
/// tokenizer.json.
struct TokenizerConfig {
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
  std::map<std::string, std::string, std::less<>> chat_templates;  // "default", "tool_use", ...
};
[[nodiscard]] Result<TokenizerConfig> parse_tokenizer_config(std::string_view json, std::string name);

}  // namespace quern::formats
