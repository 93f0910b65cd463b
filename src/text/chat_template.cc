// Chat templates: the bridge renders them; here are their variables, and where a model keeps them.
#include "quern/text/chat_template.h"

#include <chrono>
#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "quern/formats/hf_config.h"
#include "quern/text/bridge.h"
#include "quern/text/bridge_tokenizer.h"
#include "quern/text/text_file.h"
#include "quern_bridge.h"

namespace quern::text {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t local_time_now_s() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  return static_cast<std::int64_t>(now) + local.tm_gmtoff;
}

class BridgeTemplate final : public ChatTemplate {
 public:
  BridgeTemplate(bridge::TemplatePointer parsed, std::string_view source, Json variables)
      : parsed_(std::move(parsed)), source_(source), variables_(std::move(variables)) {}

  Result<std::string> render(const ChatInput& input) const override {
    QUERN_ASSIGN(ChatPrompt prompt, run(input, nullptr));
    return std::move(prompt.text);
  }

  Result<ChatPrompt> tokenize(const ChatInput& input, const Tokenizer& tokenizer) const override {
    const auto* const own = dynamic_cast<const BridgeTokenizer*>(&tokenizer);
    QUERN_ASSIGN(ChatPrompt prompt, run(input, own == nullptr ? nullptr : own->handle()));
    if (own == nullptr) {
      QUERN_ASSIGN(prompt.tokens, tokenizer.encode(prompt.text, Tokenizer::Special::kParse));
    }
    tokenizer.put_bos(prompt.tokens);
    return prompt;
  }

  bool knows_tools() const override { return source_.find("tools") != std::string::npos; }
  std::string_view source() const override { return source_; }

 private:
  // The template's variables, under the caller's own.
  Result<std::string> variables(const ChatInput& input) const {
    if (input.variables_json.empty()) return variables_.dump();
    const Json own = Json::parse(input.variables_json, nullptr, false);
    if (!own.is_object()) return fail(ErrorCode::kInvalidRequest, "template variables: expected a JSON object");
    Json all = variables_;
    all.update(own);
    return all.dump();
  }

  Result<ChatPrompt> run(const ChatInput& input, const quern_tokenizer* tokenizer) const {
    QUERN_ASSIGN(const std::string variables_json, variables(input));
    const quern_chat chat{
        .messages = bridge::bytes(input.messages_json),
        .tools = bridge::bytes(input.tools_json),
        .variables = bridge::bytes(variables_json),
        .add_generation_prompt = input.add_generation_prompt,
        .continue_final_message = input.continue_final_message,
        .now_s = input.local_time_s ? *input.local_time_s : local_time_now_s(),
    };
    quern_buffer text{};
    quern_ids ids{};
    QUERN_TRY(bridge::call(ErrorCode::kInvalidRequest, {}, [&](quern_buffer* error) {
      return quern_template_render(parsed_.get(), &chat, tokenizer, &text, &ids, error);
    }));
    return ChatPrompt{.text = bridge::take(text), .tokens = bridge::take(ids)};
  }

  bridge::TemplatePointer parsed_;
  std::string source_;
  Json variables_;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view source, std::string_view bos,
                                                          std::string_view eos,
                                                          const std::map<std::string, std::string>& others) {
  quern_template* parsed = nullptr;
  QUERN_TRY(bridge::call(ErrorCode::kUnsupportedFormat, {}, [&](quern_buffer* error) {
    return quern_template_parse(bridge::bytes(source), &parsed, error);
  }));
  Json variables = Json::object();
  for (const auto& [name, text] : others) variables[name] = text;
  if (!bos.empty()) variables["bos_token"] = bos;
  if (!eos.empty()) variables["eos_token"] = eos;
  return std::make_unique<BridgeTemplate>(bridge::TemplatePointer(parsed), source, std::move(variables));
}

Result<std::optional<std::string>> find_chat_template(const std::filesystem::path& folder) {
  QUERN_ASSIGN(std::optional<std::string> source, read_text_file(folder / "chat_template.jinja"));
  if (source) return source;
  for (const char* const name : {"chat_template.json", "tokenizer_config.json"}) {
    const std::filesystem::path path = folder / name;
    QUERN_ASSIGN(const std::optional<std::string> json, read_text_file(path));
    if (!json) continue;
    QUERN_ASSIGN(const formats::TokenizerConfig config, formats::parse_tokenizer_config(*json, path.string()));
    const auto found = config.chat_templates.find("default");
    if (found != config.chat_templates.end()) return std::optional(found->second);
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>> find_chat_template(const formats::GgufFile& file) {
  QUERN_ASSIGN(const std::optional<std::string_view> source, file.string("tokenizer.chat_template"));
  if (!source) return std::optional<std::string>();
  return std::optional<std::string>(*source);
}

}  // namespace quern::text
