// Fuzzer: a template, a NUL, and messages; whatever parses is rendered, both ways.
#include <cstdint>
#include <string_view>

#include "quern/base/check.h"
#include "quern/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using quern::text::ChatInput;
  using quern::text::ChatTemplate;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const auto parsed = ChatTemplate::parse(input.substr(0, end), "<s>", "</s>");
  if (!parsed) {
    QUERN_CHECK(!parsed.error().message.empty());
    return 0;
  }
  const std::string messages(end == std::string_view::npos ? "[]" : input.substr(end + 1));
  for (const bool proceed : {false, true}) {
    const ChatInput chat{.messages_json = messages,
                         .tools_json = R"([{"type": "function", "function": {"name": "f"}}])",
                         .add_generation_prompt = !proceed,
                         .continue_final_message = proceed,
                         .local_time_s = 1'709'209'805};
    const auto rendered = (*parsed)->render(chat);
    QUERN_CHECK(rendered || rendered.error().code == quern::ErrorCode::kInvalidRequest);
  }
  return 0;
}
