// Request bodies: the cases of fixtures/cases/wire/bodies.json, hostile numbers in every numeric field, what is passed
// on.
#include "quern/wire/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "quern/wire/internal/json.h"

namespace quern::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const sampling::SamplingParams kDefaults;

Result<ChatCompletionRequest> chat(std::string_view fields) {
  return parse_chat_completion(
      R"({"messages": [{"role": "user", "content": "hi"}])" + (fields.empty() ? "" : ", " + std::string(fields)) + "}",
      kDefaults);
}

Result<void> parse(const std::string& route, const std::string& body) {
  if (route == "chat") {
    QUERN_TRY(parse_chat_completion(body, kDefaults));
  } else {
    QUERN_TRY(parse_completion(body, kDefaults));
  }
  return {};
}

TEST(Requests, Cases) {
  std::ifstream file(QUERN_FIXTURES "/cases/wire/bodies.json");
  const Json cases = Json::parse(file);
  ASSERT_GT(cases.size(), 50U);
  for (const Json& item : cases) {
    const std::string body = item.contains("text") ? item["text"].get<std::string>() : item["body"].dump();
    SCOPED_TRACE(body);
    const auto result = parse(item["route"], body);
    if (!item.contains("param")) {
      EXPECT_TRUE(result) << result.error().message;
      continue;
    }
    ASSERT_FALSE(result);
    EXPECT_EQ(error_name(result.error().code), item.value("code", "invalid_request_error"));
    EXPECT_EQ(result.error().param, item["param"].get<std::string>());
    EXPECT_FALSE(result.error().message.empty());
  }
}

// "Every numeric field fuzzed with null, true, "1", "", [], {}, -1, 0, 0.5, 1e18, 1e400, 2^31, 2^63, 2^64: 400 or 200,
// never a crash", and a 400 names the field.
TEST(Requests, HostileNumbers) {
  const std::vector<std::string> fields = {"temperature",
                                           "top_p",
                                           "top_k",
                                           "min_p",
                                           "xtc_probability",
                                           "xtc_threshold",
                                           "seed",
                                           "repetition_penalty",
                                           "repetition_context_size",
                                           "presence_penalty",
                                           "presence_context_size",
                                           "frequency_penalty",
                                           "frequency_context_size",
                                           "max_tokens",
                                           "max_completion_tokens",
                                           "min_tokens",
                                           "n",
                                           "top_logprobs",
                                           "logprobs",
                                           "best_of"};
  const std::vector<std::string> never = {"true", "\"1\"", "\"\"", "[]", "{}", "1e400", "-1e400"};
  const std::vector<std::string> perhaps = {
      "-1", "0", "0.5", "1e18", "2147483648", "9223372036854775808", "18446744073709551616", "-0.0", "1e-400"};
  for (const std::string& field : fields) {
    const auto body = [&](const std::string& value) { return R"({"prompt": "a", ")" + field + "\": " + value + "}"; };
    EXPECT_TRUE(parse_completion(body("null"), kDefaults)) << field;
    const bool known = field != "top_logprobs";  // not on completions
    for (const std::string& value : never) {
      const auto result = parse_completion(body(value), kDefaults);
      if (!known && value.find("400") == std::string::npos) continue;
      ASSERT_FALSE(result) << field << " " << value;
      EXPECT_EQ(result.error().code, ErrorCode::kInvalidRequest);
      EXPECT_EQ(result.error().param, field) << value;
    }
    for (const std::string& value : perhaps) {
      const auto result = parse_completion(body(value), kDefaults);
      if (result || result.error().code == ErrorCode::kNotImplemented) continue;
      EXPECT_EQ(result.error().param, field) << value;
    }
  }
}

TEST(Requests, WholeNumbersHoweverTheyAreWritten) {
  const auto request = chat(R"("max_tokens": 7.0, "n": 2e0, "top_k": -1, "seed": 18446744073709551615)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->generation.max_tokens, 7);
  EXPECT_EQ(request->generation.n, 2);
  EXPECT_EQ(request->generation.sampling.top_k, 0);
  EXPECT_EQ(request->generation.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("seed": -1)")->generation.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("max_tokens": 1e18)")->generation.max_tokens, 1'000'000'000'000'000'000);
  EXPECT_FALSE(chat(R"("seed": 18446744073709551616)"));
}

TEST(Requests, DefaultsGiveWayToTheRequest) {
  sampling::SamplingParams defaults;
  defaults.temperature = 0.25F;
  defaults.top_p = 0.5F;
  const auto request =
      parse_completion(R"({"prompt": "a", "temperature": 0, "top_p": null, "min_p": 0.125})", defaults);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->generation.sampling.temperature, 0.0F);
  EXPECT_EQ(request->generation.sampling.top_p, 0.5F);
  EXPECT_EQ(request->generation.sampling.min_p, 0.125F);
}

TEST(Requests, TheLatterNameOfTheTokenLimitWins) {
  EXPECT_EQ(chat(R"("max_completion_tokens": 3, "max_tokens": 5)")->generation.max_tokens, 3);
  EXPECT_EQ(chat("")->generation.max_tokens, std::nullopt);
  EXPECT_EQ(parse_completion(R"({"prompt": "a"})", kDefaults)->generation.max_tokens, 16);
  EXPECT_EQ(parse_completion(R"({"prompt": "a", "max_tokens": 0})", kDefaults)->generation.max_tokens, 0);
}

TEST(Requests, AnEmptyStopIsNone) {
  EXPECT_THAT(chat(R"("stop": ["", "a", "b"])")->generation.stops, ElementsAre("a", "b"));
  EXPECT_THAT(chat(R"("stop": "")")->generation.stops, ElementsAre());
}

TEST(Requests, LogitBiasAndLogprobs) {
  const auto request = chat(R"("logit_bias": {"7": -100, "3": 0.5}, "logprobs": true)");
  ASSERT_TRUE(request);
  EXPECT_THAT(request->generation.sampling.logit_bias, ElementsAre(Pair(7, -100.0F), Pair(3, 0.5F)));
  EXPECT_EQ(request->generation.top_logprobs, 0);
  EXPECT_EQ(chat("")->generation.top_logprobs, -1);
  EXPECT_EQ(chat(R"("logprobs": true, "top_logprobs": 4)")->generation.top_logprobs, 4);
}

TEST(Requests, MessagesKeepTheirKeysAndNumbers) {
  const auto request = parse_chat_completion(
      R"({"messages": [
        {"zeta": 1, "role": "developer", "content": "be brief", "alpha": [0.1, 12345678901234567]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\u00e9\"\n"}]},
        {"role": "assistant", "content": null},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}],
        "chat_template_kwargs": {"z": true, "a": 1}, "reasoning_effort": "low", "model": "m", "stream": true,
        "stream_options": {"include_usage": true}})",
      kDefaults);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(
      request->chat.messages_json,
      R"([{"zeta":1,"role":"system","content":"be brief","alpha":[0.1,12345678901234567]},)"
      R"({"role":"user","content":"abé\"\n"},)"
      R"({"role":"assistant","content":""},)"
      R"({"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"content":null}])");
  EXPECT_EQ(request->chat.variables_json, R"({"z":true,"a":1,"reasoning_effort":"low"})");
  EXPECT_TRUE(request->chat.tools_json.empty());
  EXPECT_TRUE(request->chat.add_generation_prompt);
  EXPECT_EQ(request->reply.model, "m");
  EXPECT_TRUE(request->reply.stream);
  EXPECT_TRUE(request->reply.include_usage);
}

TEST(Requests, AContinuedMessageIsLeftOpen) {
  const auto request = parse_chat_completion(
      R"({"messages": [{"role": "assistant", "content": "a"}], "continue_final_message": true})", kDefaults);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->chat.continue_final_message);
  EXPECT_FALSE(request->chat.add_generation_prompt);
}

TEST(Requests, PromptsOfEveryForm) {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion(R"({"prompt": )" + prompt + "}", kDefaults)->prompts;
  };
  using Ids = std::vector<text::TokenId>;
  EXPECT_THAT(prompts(R"("a")"), ElementsAre(Prompt("a")));
  EXPECT_THAT(prompts(R"(["a", "b"])"), ElementsAre(Prompt("a"), Prompt("b")));
  EXPECT_THAT(prompts("[1, 2.0]"), ElementsAre(Prompt(Ids{1, 2})));
  EXPECT_THAT(prompts("[[1], [2, 3]]"), ElementsAre(Prompt(Ids{1}), Prompt(Ids{2, 3})));
}

TEST(Requests, Limits) {
  const auto list = [](std::size_t count, const std::string& item) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + item;
    return text + "]";
  };
  EXPECT_TRUE(chat(R"("stop": )" + list(kMaxStops, "\"a\"")));
  EXPECT_EQ(chat(R"("stop": )" + list(kMaxStops + 1, "\"a\"")).error().param, "stop");
  EXPECT_EQ(chat(R"("stop": ")" + std::string(kMaxStopBytes + 1, 'a') + "\"").error().param, "stop");
  EXPECT_EQ(parse_completion(R"({"prompt": )" + list(kMaxPrompts + 1, "\"a\"") + "}", kDefaults).error().param,
            "prompt");
}

TEST(Requests, ErrorsHoldNoText) {
  const auto broken = parse_chat_completion(R"({"messages": [{"role": "user", "content": "secret)", kDefaults);
  EXPECT_EQ(broken.error().message.find("secret"), std::string::npos);
  const auto typed = chat(R"("temperature": "secret")");
  EXPECT_EQ(typed.error().message, "'temperature': expected a number from 0 to 3.40282e+38, got a string");
}

}  // namespace
}  // namespace quern::wire
