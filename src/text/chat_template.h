// Chat templates: messages to the prompt's text and tokens, byte for byte as Hugging Face renders them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/text/tokenizer.h"

namespace quern::text {

struct ChatInput {
  /// JSON array of messages, each {"role", "content", ...}, as the request had them (content already concatenated to
  /// text).
  std::string messages_json = {};
  /// JSON array, or empty for none.
  std::string tools_json = {};
  /// JSON object of further variables (chat_template_kwargs), or empty.
  std::string variables_json = {};
  /// Opens the assistant's turn at the end.
  bool add_generation_prompt = true;
  /// The last message, an assistant's, is left open: the prompt ends where its content ends.
  bool continue_final_message = false;
  /// What strftime_now sees: local time, seconds since 1970-01-01 00:00. Nothing: the machine's clock.
  std::optional<std::int64_t> local_time_s = {};
};

struct ChatPrompt {
  std::string text;
  std::vector<TokenId> tokens;  // special-token text inside the messages' content is plain text
};

/// A parsed template. Immutable, thread-safe.
class ChatTemplate {
 public:
  /// kUnsupportedFormat with the parser's reason and line. `bos` and `eos` are the texts that the template sees as
  /// bos_token and eos_token (empty: undefined), `others` further ones by their variables' names ("pad_token").
  [[nodiscard]] static Result<std::unique_ptr<ChatTemplate>> parse(
      std::string_view source, std::string_view bos, std::string_view eos,
      const std::map<std::string, std::string>& others = {});
  virtual ~ChatTemplate() = default;
  /// kInvalidRequest with the template's own message for raise_exception, and for what it can't render. Work and memory
  /// are bounded by a budget that grows with the input, so that no template runs for ever.
  [[nodiscard]] virtual Result<std::string> render(const ChatInput& input) const = 0;
  /// render, then tokens with the special-token rule and BOS: none or one, never two. A tokenizer that Tokenizer's own
  /// functions didn't make gets no special-token rule.
  [[nodiscard]] virtual Result<ChatPrompt> tokenize(const ChatInput& input, const Tokenizer& tokenizer) const = 0;
  /// The template speaks of tools.
  [[nodiscard]] virtual bool knows_tools() const = 0;
  [[nodiscard]] virtual std::string_view source() const = 0;
};

/// The template that a model brings: folder (chat_template.jinja, tokenizer_config.json) or GGUF; nothing if it has
/// none.
[[nodiscard]] Result<std::optional<std::string>> find_chat_template(const std::filesystem::path& folder);
[[nodiscard]] Result<std::optional<std::string>> find_chat_template(const formats::GgufFile& file);
/// Built-in ones by name ("chatml", "llama3", ...), for --chat-template.
[[nodiscard]] std::optional<std::string_view> builtin_chat_template(std::string_view name);

}  // namespace quern::text
