// Events to output: when a response opens, several prompts, failures before and after, the bound.
#include "quern/server/generation.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/fake_engine.h"

namespace quern::server {
namespace {

using support::FakeEngine;

struct Harness {
  FakeEngine engine;
  int wakes = 0;

  Generation make(std::size_t requests, bool stream, std::size_t unsent_bytes = 1000) {
    const wire::ReplyHeader header{
        .kind = wire::ReplyKind::kCompletion, .id = "1", .model = "m", .choices = static_cast<std::int32_t>(requests)};
    GenerationPlan plan;
    plan.requests = requests;
    plan.stream = stream;
    plan.writer = stream ? wire::stream_writer(header) : wire::body_writer(header);
    plan.submit = [this](std::size_t, engine::ReplySink sink, CancellationToken cancellation) {
      return engine.complete({}, std::move(sink), std::move(cancellation));
    };
    return Generation(std::move(plan), unsent_bytes, [this] { ++wakes; });
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Generation, AStreamOpensWhenTheRequestIsFoundValid) {
  Harness harness;
  Generation generation = harness.make(1, true);
  EXPECT_FALSE(generation.poll().open);
  auto& request = harness.engine.request(0);
  request.start();
  EXPECT_EQ(harness.wakes, 1);
  EXPECT_TRUE(generation.poll().open);
  request.text("a");
  request.text("b");
  EXPECT_EQ(harness.wakes, 2) << "one wake until the events are taken";
  const auto output = generation.poll();
  EXPECT_EQ(count(output.bytes, "data: "), 2U);
  EXPECT_FALSE(output.ended);
  request.finish();
  request.done();
  const auto last = generation.poll();
  EXPECT_TRUE(last.ended);
  EXPECT_TRUE(last.bytes.ends_with("data: [DONE]\n\n"));
}

TEST(Generation, ABodyComesAtTheEnd) {
  Harness harness;
  Generation generation = harness.make(1, false);
  EXPECT_FALSE(generation.poll().open);
  harness.engine.request(0).start();
  harness.engine.request(0).text("abc");
  EXPECT_FALSE(generation.poll().open);
  harness.engine.request(0).finish();
  harness.engine.request(0).done({.prompt_tokens = 4, .generated_tokens = 2, .decode_ms = 1.0});
  const auto output = generation.poll();
  EXPECT_TRUE(output.open && output.ended);
  EXPECT_NE(output.bytes.find(R"("text":"abc")"), std::string::npos);
  EXPECT_NE(output.bytes.find(R"("total_tokens":6)"), std::string::npos);
}

TEST(Generation, AFailureBeforeTheStreamOpensIsItsOwnError) {
  Harness harness;
  Generation generation = harness.make(2, true);
  static_cast<void>(generation.poll());
  harness.engine.request(0).start();
  harness.engine.request(0).text("early");
  EXPECT_FALSE(generation.poll().open) << "the second prompt isn't known to be valid yet";
  harness.engine.request(1).fail({ErrorCode::kContextLengthExceeded, "too long"});
  const auto output = generation.poll();
  ASSERT_TRUE(output.refused);
  EXPECT_EQ(output.refused->code, ErrorCode::kContextLengthExceeded);
  EXPECT_TRUE(output.bytes.empty());
  EXPECT_TRUE(harness.engine.request(0).cancellation.cancelled());
}

TEST(Generation, AFailureAfterItIsOneFrame) {
  Harness harness;
  Generation generation = harness.make(1, true);
  static_cast<void>(generation.poll());
  harness.engine.request(0).start();
  harness.engine.request(0).text("a");
  static_cast<void>(generation.poll());
  harness.engine.request(0).fail({ErrorCode::kInternal, "broken"});
  const auto output = generation.poll();
  EXPECT_TRUE(output.ended);
  EXPECT_FALSE(output.refused);
  EXPECT_EQ(count(output.bytes, "data: "), 1U);
  EXPECT_NE(output.bytes.find("broken"), std::string::npos);
  EXPECT_EQ(output.bytes.find("[DONE]"), std::string::npos);
}

TEST(Generation, PromptsGoThroughAWindow) {
  Harness harness;
  Generation generation = harness.make(40, false);
  static_cast<void>(generation.poll());
  EXPECT_EQ(harness.engine.submitted(), 16U);
  Generation::Output output;
  for (std::size_t i = 0; i < 40; ++i) {
    harness.engine.request(i).answer(std::to_string(i));
    output = generation.poll();
  }
  EXPECT_TRUE(output.ended);
  EXPECT_EQ(count(output.bytes, "\"finish_reason\":\"stop\""), 40U);
  EXPECT_NE(output.bytes.find(R"({"index":39,"text":"39")"), std::string::npos);
  EXPECT_NE(output.bytes.find(R"("prompt_tokens":120)"), std::string::npos);
}

TEST(Generation, AFullQueueRefusesOnlyWhatHasNothingRunning) {
  Harness harness;
  harness.engine.set_limit(0);
  Generation refused = harness.make(2, false);
  const auto output = refused.poll();
  ASSERT_TRUE(output.refused);
  EXPECT_EQ(output.refused->code, ErrorCode::kQueueFull);

  harness.engine.set_limit(1);
  Generation waiting = harness.make(2, false);
  EXPECT_FALSE(waiting.poll().ended);
  harness.engine.set_limit(2);
  harness.engine.request(0).answer("a");
  EXPECT_FALSE(waiting.poll().ended);
  harness.engine.request(1).answer("b");
  EXPECT_TRUE(waiting.poll().ended);
}

TEST(Generation, OverflowsSoonWhileTheClientIsWrittenTo) {
  Harness harness;
  Generation generation = harness.make(1, true, 300);
  static_cast<void>(generation.poll());
  harness.engine.request(0).start();
  harness.engine.request(0).text(std::string(1000, 'a'));
  EXPECT_FALSE(generation.channel().overflowed());
  EXPECT_GT(generation.poll().bytes.size(), 1000U);
  generation.channel().set_writing(true);
  harness.engine.request(0).text("a");
  EXPECT_FALSE(generation.channel().overflowed());
  harness.engine.request(0).text(std::string(300, 'a'));
  EXPECT_TRUE(generation.channel().overflowed());
}

TEST(Generation, OverflowsAtLastWhenNobodyTakesTheEvents) {
  Harness harness;
  Generation generation = harness.make(1, true, 300);
  static_cast<void>(generation.poll());
  for (int i = 0; i < 64; ++i) harness.engine.request(0).text(std::string(200, 'a'));
  EXPECT_FALSE(generation.channel().overflowed());
  for (int i = 0; i < 64; ++i) harness.engine.request(0).text(std::string(200, 'a'));
  EXPECT_TRUE(generation.channel().overflowed());
}

TEST(Generation, DestructionCancelsAndSilences) {
  Harness harness;
  {
    Generation generation = harness.make(1, true);
    static_cast<void>(generation.poll());
  }
  EXPECT_TRUE(harness.engine.request(0).cancellation.cancelled());
  harness.engine.request(0).answer("late");
  EXPECT_EQ(harness.wakes, 0);
}

}  // namespace
}  // namespace quern::server
