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

/// "rope_scaling" or "rope_parameters", as written (the first wins, field by field); the model decides which kinds it
/// knows.
struct HfRopeScaling {
  std::string type;  // rope_type or type; empty when absent, which is the same as "default"
  std::map<std::string, double, std::less<>> numbers;
  std::vector<double> short_factor;
  std::vector<double> long_factor;
};

/// MLX's "quantization" (or "quantization_config"): defaults, and per-module overrides by the module's name.
struct HfQuantization {
  struct Module {
    std::int64_t bits = 0;   // 2, 3, 4, 5, 6 or 8; 0: left as floats
    std::int64_t group = 0;  // 16, 32, 64 or 128
    std::string mode;        // "affine" or "mxfp4"
  };
  Module defaults;
  std::map<std::string, Module, std::less<>> modules;
};

struct JsonValue;

/// config.json, generically: typed look-ups with range checks, so that each architecture reads what it needs.
/// Immutable.
class HfConfig {
 public:
  /// kInvalidFile names file, field (as a path) and offset; kUnsupportedFormat a quantization method or mode that we
  /// can't run. Depth, size and count are limited.
  [[nodiscard]] static Result<HfConfig> parse(std::string_view json, std::string name);
  /// The folder's config.json.
  [[nodiscard]] static Result<HfConfig> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Empty when absent.
  [[nodiscard]] const std::string& model_type() const { return model_type_; }
  [[nodiscard]] const std::vector<std::string>& architectures() const { return architectures_; }
  /// Nothing when absent or null; kInvalidFile when of another type or outside [low, high].
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view field, std::int64_t low,
                                                            std::int64_t high) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view field, double low, double high) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view field) const;
  [[nodiscard]] Result<std::optional<std::string>> string(std::string_view field) const;
  [[nodiscard]] Result<std::optional<std::vector<std::int64_t>>> integers(std::string_view field,
                                                                          std::int64_t low = INT64_MIN,
                                                                          std::int64_t high = INT64_MAX) const;
  /// "rope_theta", "partial_rotary_factor": in rope_parameters since transformers 5, at the top level before.
  [[nodiscard]] Result<std::optional<double>> rope_number(std::string_view field, double low, double high) const;
  [[nodiscard]] const std::optional<HfRopeScaling>& rope_scaling() const { return rope_scaling_; }
  [[nodiscard]] const std::optional<HfQuantization>& quantization() const { return quantization_; }

 private:
  std::string name_;
  std::string model_type_;
  std::vector<std::string> architectures_;
  std::optional<HfRopeScaling> rope_scaling_;
  std::optional<HfQuantization> quantization_;
  std::shared_ptr<const JsonValue> root_;
};

/// generation_config.json: the model's own defaults for sampling, and its end-of-sequence set. What is null is absent.
struct GenerationConfig {
  std::vector<std::int32_t> eos_token_ids;
  std::optional<double> temperature;         // 0 to 100
  std::optional<double> top_p;               // 0 to 1
  std::optional<std::int32_t> top_k;         // 0: no limit
  std::optional<double> min_p;               // 0 to 1
  std::optional<double> repetition_penalty;  // 0.01 to 100; 1 does nothing
  std::optional<std::int32_t> max_new_tokens;
};
/// kInvalidFile names file, field and offset.
[[nodiscard]] Result<GenerationConfig> parse_generation_config(std::string_view json, std::string name);

/// tokenizer_config.json, or special_tokens_map.json, which has the same fields: what the tokenizer's loader needs
/// beside tokenizer.json. A token may be written as a string or as an object with "content", templates as one or as a
/// named list.
struct TokenizerConfig {
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
  std::map<std::string, std::string, std::less<>> chat_templates;  // "default", "tool_use", ...
};
/// kInvalidFile names file, field and offset.
[[nodiscard]] Result<TokenizerConfig> parse_tokenizer_config(std::string_view json, std::string name);

}  // namespace quern::formats
