// Parsing with CLI11, driven by the option and command tables.
#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "values.h"

namespace quern::app {
namespace {

std::string version_text() {
  return "quern " QUERN_VERSION "\n";
}

std::string overview() {
  std::string text =
      "quern runs and serves language models on this machine.\n\n"
      "Usage: quern COMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n";
  for (const CommandRow& row : command_table()) {
    text += fmt::format("  {:<26} {}\n", fmt::format("{} {}", row.name, row.arguments), row.meaning);
  }
  text +=
      "\nA model is a path (a folder or a .gguf file), the name of one in the home or a part of it that fits no other, "
      "or\n"
      "synthetic:SHAPE (random weights). `quern COMMAND --help` lists a command's options; `quern --version` the "
      "version.\n";
  return text;
}

std::string command_help(const CommandRow& command) {
  std::string text = fmt::format("{}: {}\n\nUsage: quern {} [OPTIONS] {}\n\nOptions:\n", command.name, command.meaning,
                                 command.name, command.arguments);
  for (const OptionRow& row : option_table()) {
    if ((row.commands & command.bit) == 0) continue;
    std::string notes;
    if (!row.fallback.empty() && !row.value.empty()) notes += fmt::format(" [{}]", row.fallback);
    if (!row.variable().empty()) notes += fmt::format(" ({})", row.variable());
    text += fmt::format("  {} {}\n      {}{}\n", row.flag(), row.value, row.meaning, notes);
  }
  text += "  --help\n      show this\n";
  return text;
}

std::unexpected<Error> unknown_flag(std::string_view flag, const CommandRow& command) {
  flag = flag.substr(0, flag.find('='));
  std::vector<std::string> flags;
  for (const OptionRow& row : option_table()) {
    if ((row.commands & command.bit) != 0) flags.push_back(row.flag());
  }
  const std::vector<std::string_view> views(flags.begin(), flags.end());
  const std::string_view near = nearest(flag, views);
  return fail(ErrorCode::kInvalidRequest, "unknown option '{}' of {}{}", one_line(flag), command.name,
              near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

const CommandRow* find_command(std::string_view name) {
  const auto table = command_table();
  const auto found = std::ranges::find(table, name, &CommandRow::name);
  return found == table.end() ? nullptr : &*found;
}

constexpr int kAnyNumber = 1 << 20;

Result<Invocation> parse_command(const CommandRow& command, std::vector<std::string> words) {
  Invocation invocation;
  invocation.command = &command;
  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  bool help = false;
  parser.add_flag("-h,--help", help);
  parser.add_option("arguments", invocation.arguments)->expected(0, kAnyNumber);
  for (const OptionRow& row : option_table()) {
    if ((row.commands & command.bit) == 0) continue;
    auto* const option =
        row.value.empty()
            ? parser.add_flag(row.flag())
            : parser.add_option(row.flag())->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option->each([&values = invocation.flags, name = std::string(row.name)](const std::string& value) {
      values[name].push_back(value);
    });
  }
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    parser.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kInvalidRequest, "{}", one_line(error.what()));
  }
  if (help) return Invocation{nullptr, {}, {}, command_help(command)};
  for (const std::string& extra : parser.remaining()) {
    if (extra != "--") return unknown_flag(extra, command);
  }
  if (invocation.arguments.size() < command.min_arguments || invocation.arguments.size() > command.max_arguments) {
    return fail(ErrorCode::kInvalidRequest, "wrong number of arguments; usage: quern {} {}", command.name,
                command.arguments);
  }
  return invocation;
}

}  // namespace

Result<Invocation> parse_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return fail(ErrorCode::kInvalidRequest, "no command given; `quern --help` lists them");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") return Invocation{nullptr, {}, {}, overview()};
  if (name == "--version" || name == "version") return Invocation{nullptr, {}, {}, version_text()};
  if (name == "--help-markdown") return Invocation{nullptr, {}, {}, options_markdown()};
  if (const CommandRow* const command = find_command(name)) {
    return parse_command(*command, {arguments.begin() + 1, arguments.end()});
  }
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_table()) names.push_back(row.name);
  const std::string_view near = nearest(name, names);
  return fail(
      ErrorCode::kInvalidRequest, "unknown {} '{}'{}", name.starts_with('-') ? "option" : "command", one_line(name),
      near.empty() ? std::string("; `quern --help` lists the commands") : fmt::format("; did you mean '{}'?", near));
}

}  // namespace quern::app
