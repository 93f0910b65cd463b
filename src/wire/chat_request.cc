// POST /v1/chat/completions: the body.
#include <array>
#include <string>
#include <utility>

#include "quern/wire/internal/generation_fields.h"
#include "quern/wire/requests.h"

namespace quern::wire {
namespace {

std::string_view text_of(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

bool absent(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null();
}

/// The text of one content part.
Result<std::string_view> part_text(const Json& part, const std::string& path) {
  if (!part.is_object()) return fail(wrong_value(path, "a content part", part));
  const std::string_view type = text_of(part, "type");
  if (type == "image_url" || type == "input_audio" || type == "file") {
    return fail(Error{ErrorCode::kInvalidRequest,
                      fmt::format("'{}.type': the model takes text only, got a part of type {}", path, type),
                      path + ".type"});
  }
  if (type != "text") {
    return fail(Error{ErrorCode::kInvalidRequest, fmt::format("'{}.type': expected text", path), path + ".type"});
  }
  const auto text = part.find("text");
  if (text == part.end() || !text->is_string()) {
    return fail(wrong_value(path + ".text", "a string", text == part.end() ? Json() : *text));
  }
  return std::string_view(text->get_ref<const std::string&>());
}

/// A message's content as a string, its text parts concatenated. An assistant's may be absent: empty then, or null
/// beside tool calls, as templates expect it.
Result<void> flatten_content(Json& message, std::string_view role, const std::string& path) {
  if (absent(message, "content")) {
    if (role != "assistant") {
      return fail(wrong_value(path + ".content", "a string or an array of parts", Json()));
    }
    if (absent(message, "tool_calls")) {
      message["content"] = "";
    } else {
      message["content"] = nullptr;
    }
    return {};
  }
  Json& content = message["content"];
  if (content.is_string()) return {};
  if (!content.is_array()) return fail(wrong_value(path + ".content", "a string or an array of parts", content));
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    QUERN_ASSIGN(const std::string_view piece, part_text(content[i], fmt::format("{}.content[{}]", path, i)));
    text += piece;
  }
  content = std::move(text);
  return {};
}

Result<void> check_tool_calls(const Json& message, const std::string& path) {
  if (absent(message, "tool_calls")) return {};
  const Json& calls = message["tool_calls"];
  if (!calls.is_array()) return fail(wrong_value(path + ".tool_calls", "an array", calls));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string call = fmt::format("{}.tool_calls[{}]", path, i);
    if (!calls[i].is_object()) return fail(wrong_value(call, "an object", calls[i]));
    const auto function = calls[i].find("function");
    if (function == calls[i].end() || !function->is_object() || text_of(*function, "name").empty()) {
      return fail(Error{ErrorCode::kInvalidRequest, fmt::format("'{}.function': expected an object with a name", call),
                        call + ".function"});
    }
  }
  return {};
}

Result<void> normalize_message(Json& message, const std::string& path) {
  constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (!message.is_object()) return fail(wrong_value(path, "an object", message));
  const std::string role(text_of(message, "role"));
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    return fail(Error{ErrorCode::kInvalidRequest,
                      fmt::format("'{}.role': expected system, developer, user, assistant or tool", path),
                      path + ".role"});
  }
  if (role == "developer") message["role"] = "system";
  QUERN_TRY(flatten_content(message, role, path));
  return check_tool_calls(message, path);
}

void read_messages(Fields& fields, text::ChatInput& out) {
  const Json* given = fields.array("messages");
  if (given == nullptr || given->empty()) {
    return fields.report(
        {ErrorCode::kInvalidRequest, "'messages': expected an array of at least one message", "messages"});
  }
  Json messages = *given;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto normalized = normalize_message(messages[i], fmt::format("messages[{}]", i));
    if (!normalized) return fields.report(std::move(normalized).error());
  }
  out.messages_json = dump(messages);

  fields.boolean("continue_final_message", out.continue_final_message);
  if (out.continue_final_message && text_of(messages.back(), "role") != "assistant") {
    fields.report({ErrorCode::kInvalidRequest, "'continue_final_message': the last message isn't the assistant's",
                   "continue_final_message"});
  }
  out.add_generation_prompt = !out.continue_final_message;
}

void read_tools(Fields& fields, text::ChatInput& out) {
  bool parallel = true;
  fields.boolean("parallel_tool_calls", parallel);
  const Json* tools = fields.array("tools");
  const bool any = tools != nullptr && !tools->empty();
  bool none = false;
  if (const Json* choice = fields.find("tool_choice")) {
    const std::string_view word =
        choice->is_string() ? std::string_view(choice->get_ref<const std::string&>()) : std::string_view();
    none = word == "none";
    const bool forced = word == "required" || choice->is_object();
    if (!none && word != "auto" && !forced) {
      fields.refuse("tool_choice", "none, auto, required or a named tool", *choice);
    } else if (forced && !any) {
      fields.report({ErrorCode::kInvalidRequest, "'tool_choice': there are no tools to choose from", "tool_choice"});
    }
  }
  if (!any) return;
  if (!none) return fields.unsupported("tools", "calling tools");
  out.tools_json = dump(*tools);
}

void read_template_variables(Fields& fields, text::ChatInput& out) {
  constexpr std::array<std::string_view, 6> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh"};
  Json variables = Json::object();
  if (const Json* given = fields.object("chat_template_kwargs")) variables = *given;
  std::string effort;
  fields.string("reasoning_effort", effort);
  if (!effort.empty()) {
    if (std::ranges::find(kEfforts, effort) == kEfforts.end()) {
      fields.refuse("reasoning_effort", "none, minimal, low, medium, high or xhigh", *fields.find("reasoning_effort"));
    }
    if (!variables.contains("reasoning_effort")) variables["reasoning_effort"] = effort;
  }
  if (!variables.empty()) out.variables_json = dump(variables);
}

void read_logprobs(Fields& fields, GenerationFields& out) {
  bool logprobs = false;
  fields.boolean("logprobs", logprobs);
  std::int32_t top = -1;
  fields.integer("top_logprobs", 0, kMaxTopLogprobs, top);
  if (top >= 0 && !logprobs) {
    fields.report({ErrorCode::kInvalidRequest, "'top_logprobs': needs 'logprobs' to be true", "top_logprobs"});
  }
  if (logprobs) out.top_logprobs = std::max(top, 0);
}

}  // namespace

Result<ChatCompletionRequest> parse_chat_completion(std::string_view body, const sampling::SamplingParams& defaults) {
  QUERN_ASSIGN(const Json document, parse_body(body));
  Fields fields(document);
  ChatCompletionRequest request;
  read_reply(fields, request.reply);
  read_messages(fields, request.chat);
  read_tools(fields, request.chat);
  read_template_variables(fields, request.chat);
  read_logprobs(fields, request.generation);
  read_generation(fields, defaults, 1, request.generation);
  QUERN_TRY(fields.check());
  return request;
}

}  // namespace quern::wire
