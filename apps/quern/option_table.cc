// The option table itself.
#include <algorithm>
#include <array>
#include <limits>

#include "options.h"
#include "values.h"

namespace quern::app {
namespace {

constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();
constexpr double kBig = 1e6;

template <class Target>
Result<void> integer(std::string_view text, std::int64_t low, std::int64_t high, Target& target) {
  QUERN_ASSIGN(const std::int64_t value, parse_integer(text, low, high));
  if constexpr (requires { typename Target::value_type; }) {
    target = static_cast<typename Target::value_type>(value);
  } else {
    target = static_cast<Target>(value);
  }
  return {};
}

Result<void> number(std::string_view text, double low, double high, std::optional<float>& target) {
  QUERN_ASSIGN(const double value, parse_number(text, low, high));
  target = static_cast<float>(value);
  return {};
}

Result<void> choice(std::string_view text, std::span<const std::string_view> choices, std::size_t& target) {
  QUERN_ASSIGN(target, parse_choice(text, choices));
  return {};
}

/// Adds what stands between commas.
Result<void> text_list(std::string_view text, std::vector<std::string>& target) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) target.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return {};
}

constexpr unsigned kLoading = kServe | kChat | kGenerate;
constexpr auto kEverywhere = OptionRow::From::kEverywhere;
constexpr auto kEnvironment = OptionRow::From::kEnvironment;
constexpr auto kFlag = OptionRow::From::kFlag;

// In the order in which --help and the documentation list them.
constexpr std::array kTable = {
    OptionRow{"home", "FOLDER", "", kEnvironment, kEveryCommand,
              "where models and state are kept; unset: `$XDG_DATA_HOME/quern`, else `~/.local/share/quern`",
              [](Options& o, std::string_view v) -> Result<void> {
                if (v.empty()) return fail(ErrorCode::kInvalidRequest, "expected a folder, got nothing");
                o.home = v;
                return {};
              }},
    OptionRow{"config", "FILE", "", kEnvironment, kEveryCommand,
              "configuration file (a JSON object, keys as in docs/options.md); unset: `config.json` in the home, where "
              "there is one",
              [](Options&, std::string_view) -> Result<void> { return {}; }},
    OptionRow{"log-level", "LEVEL", "info", kEverywhere, kEveryCommand,
              "least severe lines logged: debug, info, warning, error",
              [](Options& o, std::string_view v) -> Result<void> {
                static constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
                std::size_t level = 0;
                QUERN_TRY(choice(v, kLevels, level));
                o.log_level = static_cast<LogLevel>(level);
                return {};
              }},
    OptionRow{"host", "ADDRESS", "127.0.0.1", kEverywhere, kServe, "address to listen on",
              [](Options& o, std::string_view v) -> Result<void> {
                o.host = v;
                return {};
              }},
    OptionRow{"port", "N", "8080", kEverywhere, kServe,
              "port to listen on; 0 takes a free one, which the ready line names",
              [](Options& o, std::string_view v) { return integer(v, 0, 65535, o.port); }},
    OptionRow{"served-model-name", "NAMES", "", kEverywhere, kServe,
              "further names that requests may use for the model, separated by commas; `*` takes any name",
              [](Options& o, std::string_view v) { return text_list(v, o.served_model_names); }},
    OptionRow{"shutdown-timeout", "SECONDS", "30", kEverywhere, kServe,
              "how long running replies may go on after SIGTERM or SIGINT; a second signal ends at once",
              [](Options& o, std::string_view v) -> Result<void> {
                QUERN_ASSIGN(o.shutdown_timeout_s, parse_number(v, 0.0, kBig));
                return {};
              }},
    OptionRow{"queue", "N", "64", kEverywhere, kServe, "requests that may wait; further ones are answered 429",
              [](Options& o, std::string_view v) { return integer(v, 1, 1'000'000, o.queue); }},
    OptionRow{"context", "TOKENS", "", kEverywhere, kLoading,
              "context to offer, at most the model's own, which is the default",
              [](Options& o, std::string_view v) { return integer(v, 16, kMaxTokens, o.context); }},
    OptionRow{"kv-budget", "SIZE", "", kEverywhere, kLoading,
              "memory for the KV cache, such as `2GiB`; unset: what is left of the machine's memory",
              [](Options& o, std::string_view v) -> Result<void> {
                QUERN_ASSIGN(o.kv_budget_bytes, parse_size(v));
                return {};
              }},
    OptionRow{"threads", "N", "0", kEverywhere, kLoading | kDoctor,
              "threads that compute; 0 = each core that this process may use",
              [](Options& o, std::string_view v) { return integer(v, 0, 4096, o.threads); }},
    OptionRow{"cpu-isa", "NAME", "auto", kEverywhere, kLoading | kDoctor,
              "kernels to compute with; one that this processor can't run is an error (`quern doctor` lists them)",
              [](Options& o, std::string_view v) -> Result<void> {
                o.cpu_isa = v;
                return {};
              }},
    OptionRow{"compute", "KIND", "int8", kEverywhere, kLoading,
              "int8 quantizes activations for quantized weights; exact keeps them in floating point",
              [](Options& o, std::string_view v) -> Result<void> {
                static constexpr std::array<std::string_view, 2> kKinds = {"int8", "exact"};
                std::size_t kind = 0;
                QUERN_TRY(choice(v, kKinds, kind));
                o.exact = kind == 1;
                return {};
              }},
    OptionRow{"chat-template", "NAME|FILE", "", kEverywhere, kLoading,
              "built-in template or file to use instead of the model's",
              [](Options& o, std::string_view v) -> Result<void> {
                o.chat_template = v;
                return {};
              }},
    OptionRow{"tokenizer", "MODEL", "", kEverywhere, kLoading,
              "model whose tokenizer a `synthetic:` model uses; unset: the starter",
              [](Options& o, std::string_view v) -> Result<void> {
                o.tokenizer = v;
                return {};
              }},
    OptionRow{"temperature", "X", "", kEverywhere, kLoading,
              "0 = always the likeliest token; unset, here and below: the model's default",
              [](Options& o, std::string_view v) { return number(v, 0.0, kBig, o.sampling.temperature); }},
    OptionRow{"top-k", "N", "", kEverywhere, kLoading, "draw from the N likeliest; 0 = all",
              [](Options& o, std::string_view v) { return integer(v, 0, kMaxTokens, o.sampling.top_k); }},
    OptionRow{"top-p", "X", "", kEverywhere, kLoading, "draw from the likeliest that together reach this probability",
              [](Options& o, std::string_view v) { return number(v, 0.0, 1.0, o.sampling.top_p); }},
    OptionRow{"min-p", "X", "", kEverywhere, kLoading, "draw from those at least this share as likely as the likeliest",
              [](Options& o, std::string_view v) { return number(v, 0.0, 1.0, o.sampling.min_p); }},
    OptionRow{"xtc-probability", "X", "", kEverywhere, kLoading, "chance that a draw leaves the likeliest tokens out",
              [](Options& o, std::string_view v) { return number(v, 0.0, 1.0, o.sampling.xtc_probability); }},
    OptionRow{"xtc-threshold", "X", "", kEverywhere, kLoading, "probability from which XTC may leave a token out",
              [](Options& o, std::string_view v) { return number(v, 0.0, 0.5, o.sampling.xtc_threshold); }},
    OptionRow{"repetition-penalty", "X", "", kEverywhere, kLoading,
              "divides the logits of tokens seen in prompt and reply; 1 = off",
              [](Options& o, std::string_view v) { return number(v, 0.001, kBig, o.sampling.repetition_penalty); }},
    OptionRow{"repetition-context", "N", "", kEverywhere, kLoading, "last tokens that count for it; 0 = all",
              [](Options& o, std::string_view v) { return integer(v, 0, kMaxTokens, o.sampling.repetition_context); }},
    OptionRow{"presence-penalty", "X", "", kEverywhere, kLoading,
              "subtracted from the logits of tokens that the reply holds",
              [](Options& o, std::string_view v) { return number(v, -2.0, 2.0, o.sampling.presence_penalty); }},
    OptionRow{"presence-context", "N", "", kEverywhere, kLoading, "last tokens that count for it; 0 = all",
              [](Options& o, std::string_view v) { return integer(v, 0, kMaxTokens, o.sampling.presence_context); }},
    OptionRow{"frequency-penalty", "X", "", kEverywhere, kLoading,
              "the same, once for each time that the reply holds it",
              [](Options& o, std::string_view v) { return number(v, -2.0, 2.0, o.sampling.frequency_penalty); }},
    OptionRow{"frequency-context", "N", "", kEverywhere, kLoading, "last tokens that count for it; 0 = all",
              [](Options& o, std::string_view v) { return integer(v, 0, kMaxTokens, o.sampling.frequency_context); }},
    OptionRow{"seed", "N", "", kEverywhere, kChat | kGenerate, "makes draws repeatable; unset: a new one each time",
              [](Options& o, std::string_view v) {
                return integer(v, 0, std::numeric_limits<std::int64_t>::max(), o.sampling.seed);
              }},
    OptionRow{"max-tokens", "N", "", kEverywhere, kChat | kGenerate,
              "longest reply; unset: all the room that the context has",
              [](Options& o, std::string_view v) { return integer(v, 1, kMaxTokens, o.max_tokens); }},
    OptionRow{"stop", "TEXT", "", kFlag, kGenerate, "ends the reply before this text; may be given several times",
              [](Options& o, std::string_view v) -> Result<void> {
                o.stops.emplace_back(v);
                return {};
              }},
    OptionRow{"system", "TEXT", "", kEverywhere, kChat | kGenerate, "system message of a chat",
              [](Options& o, std::string_view v) -> Result<void> {
                o.system = v;
                return {};
              }},
    OptionRow{"chat", "", "false", kFlag, kGenerate, "the prompt is a user's message, put into the chat template",
              [](Options& o, std::string_view v) -> Result<void> {
                QUERN_ASSIGN(o.as_chat, parse_switch(v));
                return {};
              }},
    OptionRow{"json", "", "false", kFlag, kDoctor | kLs, "print JSON",
              [](Options& o, std::string_view v) -> Result<void> {
                QUERN_ASSIGN(o.json, parse_switch(v));
                return {};
              }},
};

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

}  // namespace quern::app
