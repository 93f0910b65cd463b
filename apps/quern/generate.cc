// quern generate: one prompt, its continuation on standard output, figures on standard error.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "conversation.h"
#include "interrupt.h"
#include "loading.h"
#include "models.h"
#include "reply.h"
#include "terminal.h"

namespace quern::app {
namespace {

std::variant<engine::ChatRequest, engine::CompletionRequest> make_request(const Options& options, std::string prompt,
                                                                          engine::GenerateOptions generate) {
  if (!options.as_chat) return engine::CompletionRequest{std::move(prompt), std::move(generate)};
  Conversation conversation(options.system);
  conversation.add("user", prompt);
  return engine::ChatRequest{conversation.input(), std::move(generate)};
}

Result<int> generate(const Options& options, const ModelChoice& model, std::string prompt,
                     const CancellationToken& cancellation) {
  QUERN_ASSIGN(const auto engine, load_engine(options, model, cancellation));
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const auto outcome = read_reply(*engine, make_request(options, std::move(prompt), generate_options(options, *engine)),
                                  cancellation, [&](std::string_view text) {
                                    fmt::print("{}", terminal ? terminal_text(text) : text);
                                    std::fflush(stdout);
                                  });
  fmt::print("\n");
  if (!outcome) return fail(outcome.error());
  fmt::print(stderr, "{} prompt tokens, {}\n", outcome->stats.prompt_tokens, describe(outcome->stats));
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

Result<int> run_generate(const Options& options, const std::vector<std::string>& arguments) {
  QUERN_ASSIGN(const ModelChoice model, find_model(store::Home(options.home), arguments[0]));
  std::string prompt = arguments[1];
  if (prompt == "-") prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  return run_cancellable(
      [&](const CancellationToken& cancellation) { return generate(options, model, std::move(prompt), cancellation); });
}

}  // namespace quern::app
