// Where an option's value comes from, and the page that documents them.
#include "options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "quern/os/file.h"
#include "quern/store/home.h"
#include "values.h"

namespace quern::app {
namespace {

constexpr std::size_t kConfigLimitBytes = 1 << 20;

std::string spelled(std::string_view name, char dash, bool upper) {
  std::string text(name);
  for (char& c : text) {
    if (c == '-') c = dash;
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

Error at(std::string_view place, const Error& error) {
  return {ErrorCode::kInvalidRequest, fmt::format("{}: {}", place, error.message)};
}

/// A key's value as the texts that flags would have.
Result<std::vector<std::string>> value_texts(const nlohmann::json& value) {
  if (value.is_string()) return std::vector{value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return std::vector{value.dump()};
  if (value.is_array() && std::ranges::all_of(value, [](const auto& item) { return item.is_string(); })) {
    return value.get<std::vector<std::string>>();
  }
  return fail(ErrorCode::kInvalidRequest, "expected a string, a number, true, false or a list of strings");
}

/// The file's values by option name.
Result<OptionValues> read_config(const std::filesystem::path& path) {
  const auto text = os::read_file(path, kConfigLimitBytes);
  if (!text) return fail(ErrorCode::kInvalidRequest, "configuration file: {}", text.error().message);
  const auto config = nlohmann::json::parse(*text, nullptr, false);
  if (!config.is_object()) return fail(ErrorCode::kInvalidRequest, "{}: expected a JSON object", path.string());
  OptionValues values;
  for (const auto& [key, value] : config.items()) {
    const auto table = option_table();
    const auto row = std::ranges::find(table, key, &OptionRow::key);
    if (key.empty() || row == table.end()) {
      std::vector<std::string> keys;
      for (const OptionRow& known : table) {
        if (!known.key().empty()) keys.push_back(known.key());
      }
      const std::vector<std::string_view> views(keys.begin(), keys.end());
      const std::string_view near = nearest(key, views);
      return fail(ErrorCode::kInvalidRequest, "{}: unknown key '{}'{}", path.string(), one_line(key),
                  near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
    }
    auto texts = value_texts(value);
    if (!texts) return fail(at(fmt::format("{}: {}", path.string(), key), texts.error()));
    values.emplace(row->name, std::move(texts).value());
  }
  return values;
}

/// Flag or environment: what can be known before the configuration file is.
std::optional<std::string> early_value(std::string_view name, const OptionValues& flags,
                                       const Environment& environment) {
  const auto given = flags.find(name);
  return given != flags.end() ? given->second.back() : environment("QUERN_" + spelled(name, '_', true));
}

Result<std::filesystem::path> default_home(const Environment& environment) {
  // The XDG specification asks to ignore a path that isn't absolute.
  if (const auto data = environment("XDG_DATA_HOME"); data && data->starts_with('/')) {
    return std::filesystem::path(*data) / "quern";
  }
  if (const auto user = environment("HOME"); user && !user->empty()) {
    return std::filesystem::path(*user) / ".local" / "share" / "quern";
  }
  return fail(ErrorCode::kInvalidRequest, "no home folder: set QUERN_HOME, XDG_DATA_HOME or HOME");
}

Result<OptionValues> find_config(const std::filesystem::path& home, const OptionValues& flags,
                                 const Environment& environment) {
  if (const auto named = early_value("config", flags, environment)) return read_config(*named);
  const auto path = store::Home(home).config_file();
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? read_config(path) : OptionValues{};
}

/// The values that count for an option, and what to call their place.
std::pair<std::string, std::vector<std::string>> winner(const OptionRow& row, const OptionValues& flags,
                                                        const Environment& environment, const OptionValues& config) {
  if (const auto given = flags.find(row.name); given != flags.end()) return {row.flag(), given->second};
  if (const std::string variable = row.variable(); !variable.empty()) {
    if (auto set = environment(variable)) return {variable, {std::move(*set)}};
  }
  if (const auto in_file = config.find(row.name); in_file != config.end()) {
    return {fmt::format("configuration key '{}'", row.key()), in_file->second};
  }
  if (row.fallback.empty()) return {};
  return {"default of " + row.flag(), {std::string(row.fallback)}};
}

}  // namespace

void SamplingOverrides::apply(sampling::SamplingParams& params) const {
  const auto over = [](const auto& value, auto& target) { target = value.value_or(target); };
  over(temperature, params.temperature);
  over(top_k, params.top_k);
  over(top_p, params.top_p);
  over(min_p, params.min_p);
  over(xtc_probability, params.xtc_probability);
  over(xtc_threshold, params.xtc_threshold);
  over(repetition_penalty, params.repetition_penalty);
  over(repetition_context, params.repetition_context);
  over(presence_penalty, params.presence_penalty);
  over(presence_context, params.presence_context);
  over(frequency_penalty, params.frequency_penalty);
  over(frequency_context, params.frequency_context);
  over(seed, params.seed);
}

std::string OptionRow::flag() const {
  return "--" + std::string(name);
}

std::string OptionRow::variable() const {
  return from == From::kFlag ? std::string() : "QUERN_" + spelled(name, '_', true);
}

std::string OptionRow::key() const {
  return from == From::kEverywhere ? spelled(name, '_', false) : std::string();
}

Result<Options> resolve_options(const OptionValues& flags, const Environment& environment) {
  Options options;
  if (const auto home = early_value("home", flags, environment)) {
    options.home = *home;
  } else {
    QUERN_ASSIGN(options.home, default_home(environment));
  }
  QUERN_ASSIGN(const OptionValues config, find_config(options.home, flags, environment));

  for (const OptionRow& row : option_table()) {
    const auto [place, values] = winner(row, flags, environment, config);
    for (const std::string& value : values) {
      if (const auto done = row.set(options, value); !done) return fail(at(place, done.error()));
    }
  }
  return options;
}

std::string options_markdown() {
  static constexpr std::pair<unsigned, std::string_view> kNames[] = {
      {kServe, "serve"}, {kChat, "chat"}, {kGenerate, "generate"}, {kGet, "get"}, {kLs, "ls"}, {kDoctor, "doctor"}};
  std::string page =
      "# Options\n\n"
      "Made from the option table by `quern --help-markdown`. A flag wins over the environment, the environment over "
      "the\n"
      "configuration file (a JSON object), the file over the default. An unknown flag or key is an error.\n\n"
      "| flag | environment | key | default | commands | meaning |\n|---|---|---|---|---|---|\n";
  const auto code = [](std::string_view text) {
    std::string quoted;
    for (const char c : text) quoted += c == '|' ? std::string("\\|") : std::string(1, c);
    return quoted.empty() ? quoted : "`" + quoted + "`";
  };
  for (const OptionRow& row : option_table()) {
    std::vector<std::string_view> commands;
    for (const auto& [bit, name] : kNames) {
      if ((row.commands & bit) != 0) commands.push_back(name);
    }
    const std::string with_value = row.value.empty() ? row.flag() : fmt::format("{} {}", row.flag(), row.value);
    page +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(with_value), code(row.variable()), code(row.key()),
                    code(row.fallback),
                    row.commands == kEveryCommand ? "all" : fmt::format("{}", fmt::join(commands, ", ")), row.meaning);
  }
  return page;
}

}  // namespace quern::app
