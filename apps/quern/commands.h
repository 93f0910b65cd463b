// The subcommands: one table, one function each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace quern::app {

/// A subcommand. `run` gives the exit status: 0 done, 1 it failed and has said so; an Error is printed by main, which
/// exits with 2 for kInvalidRequest (the command line is wrong) and with 1 for anything else.
struct CommandRow {
  std::string_view name;
  Command bit;
  std::string_view arguments;  // as --help shows them: "[model]"
  std::size_t min_arguments;
  std::size_t max_arguments;
  std::string_view meaning;
  Result<int> (*run)(const Options& options, const std::vector<std::string>& arguments);
};

[[nodiscard]] std::span<const CommandRow> command_table();

Result<int> run_serve(const Options& options, const std::vector<std::string>& arguments);
Result<int> run_chat(const Options& options, const std::vector<std::string>& arguments);
Result<int> run_generate(const Options& options, const std::vector<std::string>& arguments);
Result<int> run_get(const Options& options, const std::vector<std::string>& arguments);
Result<int> run_ls(const Options& options, const std::vector<std::string>& arguments);
Result<int> run_doctor(const Options& options, const std::vector<std::string>& arguments);

}  // namespace quern::app
