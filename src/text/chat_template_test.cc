// Tests of chat templates: fixtures/cases/chat_template holds what Hugging Face renders; the rest is our own.
#include "quern/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace quern::text {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

constexpr std::int64_t kCaseTime_s = 1'709'209'805;  // 2024-02-29 12:30:05

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_FIXTURES "/cases/chat_template")) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Result<std::string> render(const Json& entry) {
  auto parsed = ChatTemplate::parse(entry["template"].get<std::string>(), "", "");
  if (!parsed) return fail(std::move(parsed).error());
  ChatInput input{.messages_json = entry["messages"].dump()};
  if (entry.contains("tools")) input.tools_json = entry["tools"].dump();
  if (entry.contains("variables")) input.variables_json = entry["variables"].dump();
  input.add_generation_prompt = entry.value("add_generation_prompt", false);
  input.continue_final_message = entry.value("continue_final_message", false);
  input.local_time_s = kCaseTime_s;
  return (*parsed)->render(input);
}

class ChatTemplateCases : public testing::TestWithParam<std::string> {};

TEST_P(ChatTemplateCases, RenderAsHuggingFaceDoes) {
  std::ifstream file(QUERN_FIXTURES "/cases/chat_template/" + GetParam() + ".json");
  const Json cases = Json::parse(file);
  ASSERT_FALSE(cases.empty());
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry["name"].get<std::string>() + ": " + entry["template"].get<std::string>());
    const Result<std::string> rendered = render(entry);
    if (entry.contains("expected")) {
      EXPECT_TRUE(rendered) << rendered.error().message;
      EXPECT_EQ(rendered.value_or(""), entry["expected"].get<std::string>());
    } else if (entry.contains("refused")) {
      ASSERT_FALSE(rendered) << *rendered;
      EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidRequest);
      EXPECT_EQ(rendered.error().message, entry["refused"].get<std::string>());
    } else {
      EXPECT_FALSE(rendered) << *rendered;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChatTemplateCases, testing::ValuesIn(case_files()),
                         [](const auto& chosen) { return chosen.param; });

Result<std::string> render(std::string_view source, std::string_view messages = "[]") {
  auto parsed = ChatTemplate::parse(source, "", "");
  if (!parsed) return fail(std::move(parsed).error());
  return (*parsed)->render({.messages_json = std::string(messages)});
}

TEST(ChatTemplate, AParseErrorHasReasonAndLine) {
  const auto parsed = ChatTemplate::parse("a\nb {% for x in %}", "", "");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupportedFormat);
  EXPECT_THAT(parsed.error().message, HasSubstr("line 2"));
}

TEST(ChatTemplate, AnErrorNamesItsLineAndHoldsNoPromptText) {
  const auto rendered = render("\n\n{{ messages[0].content + 1 }}", R"([{"role":"user","content":"a secret"}])");
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidRequest);
  EXPECT_THAT(rendered.error().message, HasSubstr("line 3"));
  EXPECT_THAT(rendered.error().message, testing::Not(HasSubstr("secret")));
}

TEST(ChatTemplate, WorkAndMemoryAreBounded) {
  for (const std::string_view hostile : {
           "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
           "{% set x = namespace(t='aaaaaaaa') %}{% for a in range(60) %}{% set x.t = x.t + x.t %}{% endfor %}{{ x.t "
           "}}",
           "{{ 'a' * 100000000000 }}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{{ '%999999999999d' % 1 }}",
           "{{ '{:>99999999999}'.format('x') }}",
           "{{ range(100000000) | list | length }}",
           "{{ (range(90000) | list | tojson(indent=64)) * 1000 }}",
           "{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}",
           "{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l | tojson }}",
           "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | "
           "tojson }}",
           "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
       }) {
    EXPECT_FALSE(render(hostile)) << hostile;
  }
}

TEST(ChatTemplate, WhatIsNoMessageListIsRefused) {
  for (const std::string_view messages : {"{}", "[1]", "nonsense", "[{\"a\": \"\\ud800\"}]"}) {
    const auto rendered = render("{{ messages }}", messages);
    ASSERT_FALSE(rendered) << messages;
    EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidRequest);
  }
}

TEST(ChatTemplate, TokensAreVariables) {
  const auto parsed = ChatTemplate::parse("{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ x }}", "<s>", "</s>",
                                          {{"pad_token", "<p>"}, {"x", "1"}});
  ASSERT_TRUE(parsed);
  const auto rendered = (*parsed)->render({.messages_json = "[]", .variables_json = R"({"x": 2})"});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(*rendered, "<s></s><p>2");
}

TEST(ChatTemplate, AnEmptyToolListIsNone) {
  const auto parsed = ChatTemplate::parse("{{ tools is none }}", "", "");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*(*parsed)->render({.messages_json = "[]", .tools_json = "[]"}), "True");
  EXPECT_EQ(*(*parsed)->render({.messages_json = "[]", .tools_json = "[{}]"}), "False");
  EXPECT_TRUE((*parsed)->knows_tools());
}

TEST(BuiltinTemplates, RenderATurn) {
  const std::string messages = R"([{"role":"system","content":"S"},{"role":"user","content":"U"}])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"},
      {"llama3",
       "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user"
       "<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] S\n\nU [/INST]"},
      {"zephyr", "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\n"},
      {"gemma", "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\n"},
      {"phi3", "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\n"},
  };
  for (const auto& [name, want] : cases) {
    const auto source = builtin_chat_template(name);
    ASSERT_TRUE(source) << name;
    const auto rendered = render(*source, messages);
    ASSERT_TRUE(rendered) << name << ": " << rendered.error().message;
    EXPECT_EQ(*rendered, want) << name;
  }
  EXPECT_FALSE(builtin_chat_template("nobody"));
}

}  // namespace
}  // namespace quern::text
