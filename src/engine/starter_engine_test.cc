// The whole way with real weights: the starter answers sensibly, and the same whatever the threads.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "quern/engine/engine.h"
#include "support/engine_fixture.h"
#include "support/starter.h"

namespace quern::engine {
namespace {

using tests::Collector;

std::unique_ptr<Engine> start(int threads, bool exact) {
  EngineOptions options;
  options.threads = threads;
  options.exact = exact;
  options.context = 256;
  options.model = test::starter_model()->string();
  options.model_id = "starter";
  auto engine = start_engine(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? *std::move(engine) : nullptr;
}

GenerateOptions greedy(std::int64_t max_tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0.0F;
  options.max_tokens = max_tokens;
  return options;
}

ChatRequest question() {
  ChatRequest request{{.messages_json = R"([{"role": "user", "content": "What is the capital of France?"}])"},
                      greedy(24)};
  request.options.top_logprobs = 2;
  return request;
}

class StarterEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::starter_model()) GTEST_SKIP() << test::kNoStarter;
  }
};

TEST_F(StarterEngine, CompletesAndChats) {
  // With f32 activations: the chat's first token leads by 0.08 only, which int8 activations may turn
  // (docs/accuracy.md).
  const auto engine = start(2, true);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->info().id, "starter");
  EXPECT_EQ(engine->info().context, 256);
  EXPECT_EQ(engine->info().model_context, 8192);
  EXPECT_TRUE(engine->info().has_chat_template);

  Collector completion;
  CompletionRequest asked{std::string("The capital of France is"), greedy(8)};
  ASSERT_TRUE(engine->complete(asked, completion.sink(), {}));
  completion.wait();
  EXPECT_EQ(completion.started, 5);
  EXPECT_NE(completion.text[0].find("Paris"), std::string::npos) << completion.text[0];

  Collector chat;
  ASSERT_TRUE(engine->chat(question(), chat.sink(), {}));
  chat.wait();
  EXPECT_NE(chat.text[0].find("Paris"), std::string::npos) << chat.text[0];
  EXPECT_EQ(chat.finished[0], FinishReason::kStop);
}

TEST_F(StarterEngine, AnswersAreBitEqualWhateverTheThreads) {
  std::string text;
  std::vector<float> logprobs;
  for (const int threads : {1, 2}) {
    const auto engine = start(threads, false);
    ASSERT_TRUE(engine);
    Collector reply;
    ASSERT_TRUE(engine->chat(question(), reply.sink(), {}));
    reply.wait();
    std::vector<float> seen;
    for (const TextDelta::Token& token : reply.logprobs[0]) {
      seen.push_back(token.token.logprob);
      for (const TokenLogprob& other : token.top) seen.push_back(other.logprob);
    }
    if (text.empty()) {
      text = reply.text[0];
      logprobs = seen;
    }
    EXPECT_EQ(reply.text[0], text) << threads << " threads";
    EXPECT_EQ(seen, logprobs) << threads << " threads";
  }
}

TEST_F(StarterEngine, RefusesWhatItCannotStartFrom) {
  const auto refusal = [](const std::function<void(EngineOptions&)>& change) {
    EngineOptions options;
    options.model = test::starter_model()->string();
    change(options);
    const auto engine = start_engine(options);
    return engine ? Error{ErrorCode::kInternal, "it started"} : engine.error();
  };
  EXPECT_EQ(refusal([](auto& options) { options.queue_limit = 0; }).param, "queue_limit");
  EXPECT_EQ(refusal([](auto& options) { options.context = 8193; }).param, "context");
  EXPECT_EQ(refusal([](auto& options) { options.kv_bytes = 1; }).code, ErrorCode::kMemoryAdmission);
  EXPECT_EQ(refusal([](auto& options) { options.chat_template = "{% if %}"; }).code, ErrorCode::kUnsupportedFormat);
  EXPECT_EQ(refusal([](auto& options) { options.isa = "z80"; }).code, ErrorCode::kInvalidRequest);
  EXPECT_EQ(refusal([](auto& options) { options.model = "synthetic:llama-135m"; }).param, "tokenizer");
  EXPECT_EQ(refusal([](auto& options) { options.model = "/nowhere/model.gguf"; }).code, ErrorCode::kIo);
}

}  // namespace
}  // namespace quern::engine
