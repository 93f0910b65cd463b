// Bodies and streams: a stream's pieces are the body; usage and timings; log probabilities.
#include "quern/wire/replies.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "quern/wire/internal/json.h"

namespace quern::wire {
namespace {

const ReplyStats kStats{.prompt_tokens = 5,
                        .cached_tokens = 2,
                        .completion_tokens = 3,
                        .queue_ms = 0.5,
                        .prefill_ms = 1.23456,
                        .decode_ms = 2.0};

ReplyHeader header(ReplyKind kind) {
  return {.kind = kind, .id = "7", .model = "m", .created_s = 1700000000};
}

/// The JSON of each frame; "[DONE]" as that string.
std::vector<Json> frames(const std::string& stream) {
  std::vector<Json> found;
  std::size_t at = 0;
  while (at < stream.size()) {
    const std::size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "a frame is cut";
    if (end == std::string::npos) break;
    const std::string frame = stream.substr(at, end - at);
    EXPECT_TRUE(frame.starts_with("data: "));
    EXPECT_EQ(frame.find('\n'), std::string::npos);
    const std::string data = frame.substr(6);
    found.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
    at = end + 2;
  }
  return found;
}

TEST(Replies, ChatBody) {
  const auto writer = body_writer(header(ReplyKind::kChat));
  EXPECT_EQ(writer->open(), "");
  EXPECT_EQ(writer->text({.text = "a\"é"}), "");
  EXPECT_EQ(writer->text({.text = "b"}), "");
  EXPECT_EQ(writer->finish(0, FinishReason::kLength), "");
  EXPECT_EQ(writer->done(kStats),
            R"({"id":"chatcmpl-7","object":"chat.completion","created":1700000000,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"a\"éb"},"logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,)"
            R"("prompt_tokens_details":{"cached_tokens":2}},)"
            R"("timings":{"queue_ms":0.5,"prefill_ms":1.235,"decode_ms":2.0,"cached_tokens":2}})");
}

TEST(Replies, ChatStreamWithoutUsage) {
  const auto writer = stream_writer(header(ReplyKind::kChat));
  std::string stream = writer->open();
  stream += writer->text({.text = "a"});
  stream += writer->text({.text = "b"});
  stream += writer->finish(0, FinishReason::kStop);
  stream += writer->done(kStats);
  const auto seen = frames(stream);
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(dump(seen[0]),
            R"({"id":"chatcmpl-7","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[)"
            R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(dump(seen[1]["choices"][0]["delta"]), R"({"content":"a"})");
  EXPECT_EQ(dump(seen[2]["choices"][0]["delta"]), R"({"content":"b"})");
  EXPECT_EQ(dump(seen[3]["choices"][0]), R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})");
  EXPECT_EQ(seen[3]["timings"]["cached_tokens"], 2);
  EXPECT_EQ(seen[4], "[DONE]");
  for (const Json& frame : seen) {
    EXPECT_FALSE(frame.is_object() && frame.contains("usage"));
  }
}

TEST(Replies, UsageIsItsOwnLastChunk) {
  auto asked = header(ReplyKind::kChat);
  asked.include_usage = true;
  asked.choices = 2;
  const auto writer = stream_writer(asked);
  std::string stream = writer->open();
  stream += writer->finish(1, FinishReason::kStop);
  stream += writer->text({.choice = 0, .text = "x"});
  stream += writer->finish(0, FinishReason::kLength);
  stream += writer->done(kStats);
  const auto seen = frames(stream);
  ASSERT_EQ(seen.size(), 7U);
  EXPECT_EQ(seen[2]["choices"][0]["index"], 1);
  EXPECT_EQ(seen[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(seen[3]["choices"][0]["delta"]["content"], "x");
  EXPECT_EQ(seen[4]["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(seen[4]["usage"].is_null());
  EXPECT_FALSE(seen[4].contains("timings"));
  EXPECT_TRUE(seen[5]["choices"].empty());
  EXPECT_EQ(seen[5]["usage"]["total_tokens"], 8);
  EXPECT_EQ(seen[5]["timings"]["prefill_ms"], 1.235);
}

TEST(Replies, AFailedStreamEndsWithoutDone) {
  const auto writer = stream_writer(header(ReplyKind::kChat));
  std::string stream = writer->open();
  stream += writer->fail({ErrorCode::kServerClosing, "closing"});
  const auto seen = frames(stream);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(dump(seen[1]),
            R"({"error":{"message":"closing","type":"server_error","param":null,"code":"server_closing"}})");
}

TEST(Replies, ChatLogprobs) {
  auto asked = header(ReplyKind::kChat);
  asked.logprobs = true;
  const auto writer = body_writer(asked);
  static_cast<void>(writer->text({.text = "é",
                                  .logprobs = {{.token = {"\xC3", -0.5F}, .top = {{"a", -0.25F}}},
                                               {.token = {"\xA9", -std::numeric_limits<float>::infinity()}}}}));
  static_cast<void>(writer->finish(0, FinishReason::kStop));
  const Json body = Json::parse(writer->done(kStats));
  EXPECT_EQ(dump(body["choices"][0]["logprobs"]),
            R"({"content":[{"token":"bytes:\\xc3","logprob":-0.5,"bytes":[195],"top_logprobs":[)"
            R"({"token":"a","logprob":-0.25,"bytes":[97]}]},)"
            R"({"token":"bytes:\\xa9","logprob":-9999.0,"bytes":[169],"top_logprobs":[]}]})");
}

TEST(Replies, CompletionLogprobsCountCharacters) {
  auto asked = header(ReplyKind::kCompletion);
  asked.logprobs = true;
  const std::vector<TokenLogprobs> first = {{.token = {"é", std::numeric_limits<float>::quiet_NaN()}},
                                            {.token = {"bc", -1.0F}, .top = {{"bc", -1.0F}, {"d", -2.0F}}}};
  const std::vector<TokenLogprobs> second = {{.token = {"e", -0.5F}}};
  const auto body = body_writer(asked);
  static_cast<void>(body->text({.text = "ébc", .logprobs = first}));
  static_cast<void>(body->text({.text = "e", .logprobs = second}));
  static_cast<void>(body->finish(0, FinishReason::kStop));
  const Json whole = Json::parse(body->done(kStats))["choices"][0];
  EXPECT_EQ(whole["text"], "ébce");
  EXPECT_EQ(dump(whole["logprobs"]), R"({"tokens":["é","bc","e"],"token_logprobs":[null,-1.0,-0.5],)"
                                     R"("top_logprobs":[null,{"bc":-1.0,"d":-2.0},{}],"text_offset":[0,1,3]})");

  const auto stream = stream_writer(asked);
  EXPECT_EQ(stream->open(), "");
  static_cast<void>(stream->text({.text = "ébc", .logprobs = first}));
  const auto seen = frames(stream->text({.text = "e", .logprobs = second}));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0]["object"], "text_completion");
  EXPECT_EQ(seen[0]["choices"][0]["text"], "e");
  EXPECT_EQ(dump(seen[0]["choices"][0]["logprobs"]["text_offset"]), "[3]");
}

TEST(Replies, ErrorBodies) {
  EXPECT_EQ(
      error_body({ErrorCode::kInvalidRequest, "wrong", "top_p"}),
      R"({"error":{"message":"wrong","type":"invalid_request_error","param":"top_p","code":"invalid_request_error"}})");
  const Json unsupported = Json::parse(error_body({ErrorCode::kUnsupportedExecution, "why"}));
  EXPECT_EQ(dump(unsupported["error"]["reasons"]), R"(["why"])");
}

TEST(Replies, Models) {
  const std::vector<ModelEntry> models = {{.id = "a/b", .root = "a/b", .created_s = 3, .context = 64}};
  EXPECT_EQ(models_body(models),
            R"({"object":"list","data":[{"id":"a/b","object":"model","created":3,"owned_by":"quern","root":"a/b",)"
            R"("max_model_len":64}]})");
}

}  // namespace
}  // namespace quern::wire
