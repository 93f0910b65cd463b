// The table of subcommands.
#include "commands.h"

#include <array>

namespace quern::app {
namespace {

constexpr std::array kTable = {
    CommandRow{"serve", kServe, "[model]", 0, 1, "serve a model over HTTP", run_serve},
    CommandRow{"chat", kChat, "[model]", 0, 1, "chat with a model in the terminal", run_chat},
    CommandRow{"generate", kGenerate, "<model> <prompt>", 2, 2, "continue a prompt; `-` reads it from standard input",
               run_generate},
    CommandRow{"get", kGet, "starter", 1, 1, "fetch the starter model into the home", run_get},
    CommandRow{"ls", kLs, "", 0, 0, "list the models in the home", run_ls},
    CommandRow{"doctor", kDoctor, "", 0, 0, "show what this machine offers and what is missing", run_doctor},
};

}  // namespace

std::span<const CommandRow> command_table() {
  return kTable;
}

}  // namespace quern::app
