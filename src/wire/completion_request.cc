// POST /v1/completions: the body.
#include <cstdint>
#include <limits>
#include <utility>

#include "quern/wire/internal/generation_fields.h"
#include "quern/wire/requests.h"

namespace quern::wire {
namespace {

// What OpenAI's API gives when the request doesn't say.
constexpr std::int64_t kDefaultMaxTokens = 16;

Result<std::vector<text::TokenId>> token_ids(const Json& array, const std::string& path) {
  std::vector<text::TokenId> ids;
  ids.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto id = whole_number(array[i]);
    if (!id || *id < 0 || *id > std::numeric_limits<text::TokenId>::max()) {
      return fail(wrong_value(fmt::format("{}[{}]", path, i), "a token id", array[i]));
    }
    ids.push_back(static_cast<text::TokenId>(*id));
  }
  return ids;
}

Result<Prompt> one_prompt(const Json& value, const std::string& path) {
  if (value.is_string()) return Prompt(value.get_ref<const std::string&>());
  if (!value.is_array() || value.empty()) return fail(wrong_value(path, "a string or token ids", value));
  QUERN_ASSIGN(auto ids, token_ids(value, path));
  return Prompt(std::move(ids));
}

Result<std::vector<Prompt>> prompts_of(const Json& value) {
  std::vector<Prompt> prompts;
  const bool list = value.is_array() && !value.empty() && (value[0].is_string() || value[0].is_array());
  if (!list) {
    QUERN_ASSIGN(Prompt prompt, one_prompt(value, "prompt"));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value.size() > kMaxPrompts) {
    return fail(Error{ErrorCode::kInvalidRequest,
                      fmt::format("'prompt': {} prompts, at most {}", value.size(), kMaxPrompts), "prompt"});
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    QUERN_ASSIGN(Prompt prompt, one_prompt(value[i], fmt::format("prompt[{}]", i)));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

void refuse_unsupported(Fields& fields, std::int32_t n) {
  std::string suffix;
  fields.string("suffix", suffix);
  if (!suffix.empty()) fields.unsupported("suffix", "text after the completion");
  std::int64_t best_of = n;
  fields.integer("best_of", 1, kMaxChoices, best_of);
  if (best_of != n) fields.unsupported("best_of", "choosing among more replies than n");
}

}  // namespace

Result<CompletionRequest> parse_completion(std::string_view body, const sampling::SamplingParams& defaults) {
  QUERN_ASSIGN(const Json document, parse_body(body));
  Fields fields(document);
  CompletionRequest request;
  read_reply(fields, request.reply);
  const Json* prompt = fields.find("prompt");
  auto prompts = prompts_of(prompt == nullptr ? Json() : *prompt);
  if (prompts) {
    request.prompts = std::move(prompts).value();
  } else {
    fields.report(std::move(prompts).error());
  }
  fields.boolean("echo", request.echo);
  fields.integer("logprobs", 0, kMaxTopLogprobs, request.generation.top_logprobs);
  request.generation.max_tokens = kDefaultMaxTokens;
  read_generation(fields, defaults, 0, request.generation);
  refuse_unsupported(fields, request.generation.n);
  QUERN_TRY(fields.check());
  return request;
}

}  // namespace quern::wire
