// Checks before work: what is cheap to refuse is refused first.
#include "quern/engine/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace quern::engine {
namespace {

std::unexpected<Error> refuse(std::string_view field, std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidRequest, fmt::format("{} {}", field, message), std::string(field)});
}

Result<void> check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  if (high == std::numeric_limits<std::int64_t>::max()) {
    return refuse(field, fmt::format("must be {} or more, not {}", low, value));
  }
  return refuse(field, fmt::format("must be {} to {}, not {}", low, high, value));
}

Result<void> check_options(const GenerateOptions& options, bool chat, std::int32_t vocab) {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMostChoices = 128;
  constexpr std::int64_t kMostTopLogprobs = 20;
  QUERN_TRY(sampling::check_params(options.sampling, vocab));
  QUERN_TRY(check_range("n", options.n, 1, kMostChoices));
  QUERN_TRY(check_range("top_logprobs", options.top_logprobs, -1, kMostTopLogprobs));
  if (options.max_tokens) QUERN_TRY(check_range("max_tokens", *options.max_tokens, chat ? 1 : 0, kAny));
  QUERN_TRY(check_range("min_tokens", options.min_tokens, 0, options.max_tokens.value_or(kAny)));
  return {};
}

Result<std::vector<text::TokenId>> tokens_of(const Prompt& prompt, const text::Tokenizer& tokenizer,
                                             const text::ChatTemplate* chat_template) {
  if (const auto* tokens = std::get_if<std::vector<text::TokenId>>(&prompt)) return *tokens;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return tokenizer.encode_prompt(*text, text::Tokenizer::Special::kParse);
  }
  if (chat_template == nullptr) {
    return fail(ErrorCode::kUnsupportedExecution, "the model has no chat template: give one, or use completions");
  }
  QUERN_ASSIGN(auto rendered, chat_template->tokenize(std::get<text::ChatInput>(prompt), tokenizer));
  return std::move(rendered.tokens);
}

}  // namespace

Result<void> prepare(Reply& reply, const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                     std::int64_t context, std::int32_t vocab) {
  GenerateOptions& options = reply.options;
  const std::string_view field = reply.is_chat() ? "messages" : "prompt";
  QUERN_TRY(check_options(options, reply.is_chat(), vocab));
  QUERN_ASSIGN(reply.prompt_tokens, tokens_of(reply.prompt, tokenizer, chat_template));
  if (reply.prompt_tokens.empty()) return refuse(field, "must have at least one token");
  const auto outside = std::ranges::find_if(reply.prompt_tokens, [&](auto id) { return id < 0 || id >= vocab; });
  if (outside != reply.prompt_tokens.end()) {
    return refuse(field, fmt::format("holds token {}; the model has tokens 0 to {}", *outside, vocab - 1));
  }
  const std::int64_t room = context - std::ssize(reply.prompt_tokens);
  const std::int64_t least = options.max_tokens == 0 ? 0 : 1;
  if (room < least) {
    return std::unexpected(
        Error{ErrorCode::kContextLengthExceeded,
              fmt::format("the prompt has {} tokens, which leaves no room for a reply: the context is {} tokens",
                          reply.prompt_tokens.size(), context),
              std::string(field)});
  }
  options.max_tokens = std::min(room, options.max_tokens.value_or(room));
  return {};
}

}  // namespace quern::engine
