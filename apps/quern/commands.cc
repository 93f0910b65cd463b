// The table of subcommands.
#include "commands.h"

#include <array>

namespace quern::app {
namespace {

constexpr std::array kTable = {
    CommandRow{"get", kGet, "starter", 1, 1, "fetch the starter model into the home", run_get},
    CommandRow{"ls", kLs, "", 0, 0, "list the models in the home", run_ls},
};

}  // namespace

std::span<const CommandRow> command_table() {
  return kTable;
}

}  // namespace quern::app
