// OpenAI's request bodies: untrusted JSON to typed requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quern/base/result.h"
#include "quern/sampling/params.h"
#include "quern/text/chat_template.h"
#include "quern/text/tokenizer.h"

namespace quern::wire {

/// What every generating request may say. Absent fields hold the default.
struct GenerationFields {
  sampling::SamplingParams sampling;  // the request's fields over the model's defaults; but for the seed
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> max_tokens;
  std::int64_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stops;  // none is empty
  std::int32_t n = 1;
  std::int32_t top_logprobs = -1;  // -1 = no logprobs, 0 to 20 = the token's own and that many of the best
};

struct ReplyFields {
  std::string model;  // empty = the current one
  bool stream = false;
  bool include_usage = false;
};

/// POST /v1/chat/completions.
struct ChatCompletionRequest {
  ReplyFields reply;
  text::ChatInput
      chat;  // contents concatenated to text, developer made system; other keys and their order as they came
  GenerationFields generation;
};

using Prompt = std::variant<std::string, std::vector<text::TokenId>>;

/// POST /v1/completions. One reply per prompt, in their order.
struct CompletionRequest {
  ReplyFields reply;
  std::vector<Prompt> prompts;
  bool echo = false;
  GenerationFields generation;
};

/// Bounds of one request, beside the size and the depth (128) of its JSON.
inline constexpr std::size_t kMaxStops = 64;
inline constexpr std::size_t kMaxStopBytes = 4096;  // each
inline constexpr std::size_t kMaxLogitBiases = 1024;
inline constexpr std::size_t kMaxPrompts = 1024;
inline constexpr std::int64_t kMaxChoices = 128;
inline constexpr std::int64_t kMaxTopLogprobs = 20;

/// Errors: kInvalidRequest, kNotImplemented (a field that asks for what this server can't do), with the field in
/// `param`. Unknown fields are ignored, null is absent. Messages never hold values of text fields. Any thread.
[[nodiscard]] Result<ChatCompletionRequest> parse_chat_completion(std::string_view body,
                                                                  const sampling::SamplingParams& defaults);
[[nodiscard]] Result<CompletionRequest> parse_completion(std::string_view body,
                                                         const sampling::SamplingParams& defaults);

}  // namespace quern::wire
