// Options: the one table of what can be set. Flags, environment, configuration file, --help and docs/options.md come
// from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/log.h"
#include "quern/base/result.h"
#include "quern/sampling/params.h"

namespace quern::app {

/// Subcommands, as bits: a row of the table names those that take the option.
enum Command : unsigned {
  kServe = 1U << 0U,
  kChat = 1U << 1U,
  kGenerate = 1U << 2U,
  kGet = 1U << 3U,
  kLs = 1U << 4U,
  kDoctor = 1U << 5U,
  kEveryCommand = ~0U,
};

/// Sampling fields that were set; the rest is the model's own default.
struct SamplingOverrides {
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<float> repetition_penalty;
  std::optional<std::int32_t> repetition_context;
  std::optional<float> presence_penalty;
  std::optional<std::int32_t> presence_context;
  std::optional<float> frequency_penalty;
  std::optional<std::int32_t> frequency_context;
  std::optional<std::uint64_t> seed;

  void apply(sampling::SamplingParams& params) const;
};

/// Every option's value. Defaults are the table's, not members' initial values.
struct Options {
  std::filesystem::path home;
  LogLevel log_level = {};
  std::string host;
  std::uint16_t port = 0;
  std::vector<std::string> served_model_names;
  double shutdown_timeout_s = 0.0;
  std::size_t queue = 0;
  std::optional<std::int64_t> context;
  int threads = 0;
  std::string cpu_isa;
  bool exact = false;
  std::optional<std::uint64_t> kv_budget_bytes;
  std::string chat_template;
  std::string tokenizer;
  SamplingOverrides sampling;
  std::optional<std::int64_t> max_tokens;
  std::vector<std::string> stops;
  std::string system;
  bool as_chat = false;
  bool json = false;
};

/// A row of the table. The name `kv-budget` gives the flag --kv-budget, the variable QUERN_KV_BUDGET and the key
/// "kv_budget".
struct OptionRow {
  enum class From : std::uint8_t {
    kEverywhere,   // flag, environment, configuration file
    kEnvironment,  // flag and environment
    kFlag,         // flag only
  };
  std::string_view name;
  std::string_view value;     // what --help calls the value; empty for a switch
  std::string_view fallback;  // the default, as one would write it; empty = not set
  From from;
  unsigned commands;
  std::string_view meaning;
  /// Reads one value into its member; a list grows. kInvalidRequest says what was expected.
  Result<void> (*set)(Options& options, std::string_view text);

  [[nodiscard]] std::string flag() const;
  [[nodiscard]] std::string variable() const;  // empty when the environment doesn't set it
  [[nodiscard]] std::string key() const;       // empty when the file doesn't set it
};

[[nodiscard]] std::span<const OptionRow> option_table();

/// What one source gives, by option name. Several values of a list option add up; of another the last one counts.
using OptionValues = std::map<std::string, std::vector<std::string>, std::less<>>;
/// Looks a variable up; nothing when it isn't set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// Flag, else environment, else configuration file (--config, else config.json in the home), else default, row by row.
/// kInvalidRequest names the place of what is wrong; an unknown key is an error that names the nearest known one.
[[nodiscard]] Result<Options> resolve_options(const OptionValues& flags, const Environment& environment);

/// docs/options.md.
[[nodiscard]] std::string options_markdown();

}  // namespace quern::app
