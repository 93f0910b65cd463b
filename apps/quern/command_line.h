// The command line: which subcommand, its flags and arguments; and the help texts.
#pragma once

#include <string>
#include <vector>

#include "commands.h"

namespace quern::app {

/// What was asked for: a command to run, or a text to print.
struct Invocation {
  const CommandRow* command = nullptr;  // null: print `text` and end
  OptionValues flags;
  std::vector<std::string> arguments;
  std::string text;
};

/// `arguments` without the program's name. kInvalidRequest names what isn't understood and the nearest known name.
[[nodiscard]] Result<Invocation> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace quern::app
