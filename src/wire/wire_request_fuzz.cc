// Fuzzer: request bodies of both kinds. What is accepted must be within the ranges that the header promises.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quern/base/check.h"
#include "quern/wire/replies.h"
#include "quern/wire/requests.h"

namespace {

void check_generation(const quern::wire::GenerationFields& fields) {
  QUERN_CHECK(fields.n >= 1 && fields.n <= quern::wire::kMaxChoices);
  QUERN_CHECK(fields.top_logprobs >= -1 && fields.top_logprobs <= quern::wire::kMaxTopLogprobs);
  QUERN_CHECK(fields.min_tokens >= 0 && fields.max_tokens.value_or(0) >= 0);
  QUERN_CHECK(fields.sampling.temperature >= 0 && fields.sampling.top_p >= 0 && fields.sampling.top_p <= 1);
  QUERN_CHECK(fields.stops.size() <= quern::wire::kMaxStops);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (const auto chat = quern::wire::parse_chat_completion(body, {})) {
    check_generation(chat->generation);
    QUERN_CHECK(!chat->chat.messages_json.empty());
  } else {
    QUERN_CHECK(!quern::wire::error_body(chat.error()).empty());
  }
  if (const auto completion = quern::wire::parse_completion(body, {})) {
    check_generation(completion->generation);
    QUERN_CHECK(!completion->prompts.empty());
  }
  return 0;
}
