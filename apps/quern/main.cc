// quern: the one binary. Only this program reads the environment and parses flags.
#include <cstdio>
#include <cstdlib>

#include "command_line.h"
#include "values.h"

namespace quern::app {
namespace {

std::optional<std::string> from_environment(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int report(const Error& error) {
  std::fprintf(stderr, "quern: %s\n", one_line(error.message, 4000).c_str());
  return error.code == ErrorCode::kInvalidRequest ? 2 : 1;
}

int run(const std::vector<std::string>& arguments) {
  const auto invocation = parse_command_line(arguments);
  if (!invocation) return report(invocation.error());
  if (invocation->command == nullptr) return std::fputs(invocation->text.c_str(), stdout) < 0 ? 1 : 0;
  const auto options = resolve_options(invocation->flags, from_environment);
  if (!options) return report(options.error());
  set_log_level(options->log_level);
  const auto status = invocation->command->run(*options, invocation->arguments);
  return status ? *status : report(status.error());
}

}  // namespace
}  // namespace quern::app

int main(int count, char** arguments) {
  return quern::app::run({arguments + 1, arguments + count});
}
