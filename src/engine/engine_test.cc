// Requests against a scripted model: what the client sees, counts, and every way to end.
#include "quern/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <stdexcept>

#include "support/engine_fixture.h"

namespace quern::engine {
namespace {

using tests::Collector;
using tests::ScriptedEngine;

std::string bytes_of(const std::vector<TextDelta::Token>& tokens) {
  std::string bytes;
  for (const TextDelta::Token& token : tokens) bytes += token.token.bytes;
  return bytes;
}

TEST(Engine, AReplyIsTextFinishAndCounts) {
  ScriptedEngine scripted({"Hel", "lo", " there"});
  scripted.hook->set([&](int) { scripted.clock->advance_ms(10); });
  Collector reply;
  scripted.run(ScriptedEngine::request("a prompt of more than one chunk|"), reply);
  EXPECT_EQ(reply.started, 32);
  EXPECT_EQ(reply.text[0], "Hello there");
  EXPECT_EQ(reply.finished[0], FinishReason::kStop);
  EXPECT_TRUE(reply.logprobs.empty());
  ASSERT_TRUE(reply.stats);
  EXPECT_EQ(reply.stats->prompt_tokens, 32);
  EXPECT_EQ(reply.stats->cached_tokens, 0);
  EXPECT_EQ(reply.stats->generated_tokens, 4) << "end of sequence counts";
  EXPECT_EQ(reply.stats->queue_ms, 0.0);
  EXPECT_EQ(reply.stats->prefill_ms, 20.0) << "two chunks";
  EXPECT_EQ(reply.stats->decode_ms, 30.0) << "three steps after the first token";
  const EngineStatus status = scripted.engine->status();
  EXPECT_EQ(status.active, 0);
  EXPECT_EQ(status.queued, 0);
  EXPECT_EQ(status.requests_accepted, 1);
  EXPECT_EQ(status.requests_finished, 1);
  EXPECT_EQ(status.generated_tokens, 4);

  Collector again;
  scripted.run(ScriptedEngine::request("a prompt of more than one chunk|"), again);
  EXPECT_EQ(again.text, reply.text);
  EXPECT_EQ(again.stats->cached_tokens, 16);
}

TEST(Engine, StopStringsEndTheReplyAndLeakNothing) {
  struct Case {
    const char* what;
    std::vector<std::string> script;
    std::vector<std::string> stops;
    std::string text;
    std::int64_t tokens;
  };
  const std::vector<Case> cases = {
      {"one token", {"a", "STOP", "b"}, {"STOP"}, "a", 2},
      {"three tokens", {"a", "ST", "O", "P", "b"}, {"STOP"}, "a", 4},
      {"inside a token", {"one STOP two"}, {"STOP"}, "one ", 1},
      {"text before and after it in its tokens", {"xS", "TO", "Py"}, {"STOP"}, "x", 3},
      {"several in one token, the earliest wins", {"a END b STOP"}, {"STOP", "END"}, "a ", 1},
      {"that begins first, though listed last", {"aXbY"}, {"Y", "XbY"}, "a", 1},
      {"only begun: the held text comes at the end", {"a", "ST", "O"}, {"STOP"}, "aSTO", 4},
      {"begun, then not", {"a", "ST", "RAW"}, {"STOP"}, "aSTRAW", 4},
      {"empty is no stop", {"a", "b"}, {""}, "ab", 3},
      {"several bytes a character", {"é", "\xe6\xb0", "\xb4", "x"}, {"水"}, "é", 3},
      {"at the very first", {"STOP"}, {"STOP"}, "", 1},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    ScriptedEngine scripted(test.script);
    auto request = ScriptedEngine::request();
    request.options.stops = test.stops;
    Collector reply;
    scripted.run(request, reply);
    EXPECT_EQ(reply.text[0], test.text);
    EXPECT_EQ(reply.finished[0], FinishReason::kStop);
    EXPECT_EQ(reply.stats->generated_tokens, test.tokens);
    EXPECT_EQ(scripted.engine->status().generated_tokens, test.tokens);
  }
}

TEST(Engine, TokensDrawnPastAStopAreNotCounted) {
  ScriptedEngine scripted({"a", "b", "STOP", "c", "d", "e", "f", "g", "h", "i"});
  std::latch ahead(1);
  scripted.hook->set([&](int pass) {
    if (pass == 8) ahead.count_down();
  });
  auto request = ScriptedEngine::request();
  request.options.stops = {"STOP"};
  Collector reply;
  const auto wait_ahead = [&](const ReplyEvent& event) {
    if (std::holds_alternative<ReplyStarted>(event)) ahead.wait();
  };
  ASSERT_TRUE(scripted.engine->complete(request, reply.sink(wait_ahead), {}));
  reply.wait();
  EXPECT_EQ(reply.text[0], "ab");
  EXPECT_EQ(reply.stats->generated_tokens, 3);
  EXPECT_EQ(scripted.engine->status().generated_tokens, 3);
}

TEST(Engine, AStopEndsTheDecoding) {
  std::vector<std::string> script(150, "x");
  script[3] = "STOP";
  ScriptedEngine scripted(script);
  std::latch stopped(1);
  scripted.hook->set([&](int pass) {
    if (pass == 20) stopped.wait();  // the stop is known by now
  });
  auto request = ScriptedEngine::request();
  request.options.stops = {"STOP"};
  Collector reply;
  const auto note_finish = [&](const ReplyEvent& event) {
    if (std::holds_alternative<ChoiceFinished>(event)) stopped.count_down();
  };
  ASSERT_TRUE(scripted.engine->complete(request, reply.sink(note_finish), {}));
  reply.wait();
  EXPECT_LE(scripted.hook->passes, 21) << "one pass at most after the stop was seen";
}

TEST(Engine, CharactersAreNeverSplit) {
  const std::string emoji = "👩🏽‍🚀";
  std::vector<std::string> bytes;
  for (const char byte : emoji) bytes.emplace_back(1, byte);
  for (const std::size_t cut : {bytes.size(), bytes.size() - 1, std::size_t{7}, std::size_t{3}}) {
    ScriptedEngine scripted(bytes);
    auto request = ScriptedEngine::request();
    request.options.max_tokens = static_cast<std::int64_t>(cut);
    Collector reply;
    scripted.run(request, reply);
    EXPECT_EQ(reply.text[0].find("\uFFFD"), std::string::npos);
    EXPECT_EQ(reply.text[0], emoji.substr(0, cut == bytes.size() ? cut : cut == 3 ? 0 : cut == 7 ? 4 : 11));
    EXPECT_EQ(reply.finished[0], FinishReason::kLength);
    EXPECT_EQ(reply.stats->generated_tokens, static_cast<std::int64_t>(cut));
  }
}

TEST(Engine, EndOfSequenceMayBeIgnoredOrHeldOff) {
  ScriptedEngine scripted({"a", "b"});
  auto ignoring = ScriptedEngine::request();
  ignoring.options.ignore_eos = true;
  ignoring.options.max_tokens = 6;
  Collector ignored;
  scripted.run(ignoring, ignored);
  EXPECT_EQ(ignored.text[0], "ab");
  EXPECT_EQ(ignored.finished[0], FinishReason::kLength);
  EXPECT_EQ(ignored.stats->generated_tokens, 6);

  auto held = ScriptedEngine::request();
  held.options.min_tokens = 5;
  held.options.max_tokens = 20;
  Collector longer;
  scripted.run(held, longer);
  EXPECT_GE(longer.stats->generated_tokens, 5);
}

TEST(Engine, TheContextClampsTheLengthAndRefusesAPromptThatFillsIt) {
  ScriptedEngine scripted(std::vector<std::string>(300, "x"), {.context = 50});
  for (const std::optional<std::int64_t> asked : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1000)}) {
    auto request = ScriptedEngine::request(std::string(39, 'p') + "|");
    request.options.max_tokens = asked;
    Collector reply;
    scripted.run(request, reply);
    EXPECT_EQ(reply.text[0], std::string(10, 'x'));
    EXPECT_EQ(reply.finished[0], FinishReason::kLength);
  }
  Collector one;
  scripted.run(ScriptedEngine::request(std::string(49, 'p')), one);
  EXPECT_EQ(one.stats->generated_tokens, 1);

  Collector full;
  scripted.run(ScriptedEngine::request(std::string(50, 'p')), full);
  ASSERT_TRUE(full.error);
  EXPECT_FALSE(full.started);
  EXPECT_EQ(full.error->code, ErrorCode::kContextLengthExceeded);
  EXPECT_NE(full.error->message.find("has 50 tokens"), std::string::npos) << full.error->message;
  EXPECT_NE(full.error->message.find("is 50 tokens"), std::string::npos) << full.error->message;

  auto scored = ScriptedEngine::request(std::string(50, 'p'));
  scored.options.max_tokens = 0;
  Collector evaluated;
  scripted.run(scored, evaluated);
  EXPECT_EQ(evaluated.finished[0], FinishReason::kLength);
  EXPECT_EQ(evaluated.stats->generated_tokens, 0);
}

TEST(Engine, BosStandsInFrontWhereTheTokenizerWantsIt) {
  ScriptedEngine scripted({"a"}, {.add_bos = true});
  Collector reply;
  auto request = ScriptedEngine::request("p|");
  request.options.echo = true;
  scripted.run(request, reply);
  EXPECT_EQ(reply.started, 3);
  EXPECT_EQ(reply.text[0], "p|a") << "and is no text";
}

TEST(Engine, WhatIsWrongIsSaidBeforeTheReplyStarts) {
  struct Case {
    const char* param;
    std::function<void(CompletionRequest&)> break_it;
  };
  const std::vector<Case> cases = {
      {"temperature", [](auto& r) { r.options.sampling.temperature = -1.0F; }},
      {"logit_bias", [](auto& r) { r.options.sampling.logit_bias = {{100000, 1.0F}}; }},
      {"n", [](auto& r) { r.options.n = 0; }},
      {"n", [](auto& r) { r.options.n = 129; }},
      {"top_logprobs", [](auto& r) { r.options.top_logprobs = 21; }},
      {"max_tokens", [](auto& r) { r.options.max_tokens = -1; }},
      {"min_tokens", [](auto& r) { r.options.min_tokens = -1; }},
      {"prompt", [](auto& r) { r.prompt = ""; }},
      {"prompt", [](auto& r) { r.prompt = std::vector<text::TokenId>{1, -1}; }},
      {"prompt", [](auto& r) { r.prompt = std::vector<text::TokenId>{1, 1000000}; }},
  };
  ScriptedEngine scripted({"a"});
  for (const Case& test : cases) {
    auto request = ScriptedEngine::request();
    test.break_it(request);
    Collector reply;
    scripted.run(request, reply);
    EXPECT_FALSE(reply.started);
    ASSERT_TRUE(reply.error) << test.param;
    EXPECT_EQ(reply.error->code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(reply.error->param, test.param) << reply.error->message;
  }
  Collector chat;
  ASSERT_TRUE(scripted.engine->chat({}, chat.sink(), {}));
  chat.wait();
  EXPECT_EQ(chat.error->code, ErrorCode::kUnsupportedExecution) << "this model has no template";
  EXPECT_EQ(scripted.engine->status().queued, 0);
  EXPECT_EQ(scripted.engine->status().requests_finished, 11);
}

/// Nearly even logits: what is drawn depends on the random numbers.
tests::ScriptedModel::Score even() {
  return [](std::span<const std::int32_t>, std::int32_t token) { return token >= 'a' && token <= 'z' ? 5.0F : -50.0F; };
}

TEST(Engine, ChoicesDifferThoughTheyShareASeedAndRepeat) {
  ScriptedEngine scripted({}, {.score = even()});
  auto request = ScriptedEngine::request();
  request.options.sampling.temperature = 1.0F;
  request.options.sampling.seed = 42;
  request.options.n = 4;
  request.options.max_tokens = 20;
  Collector first;
  scripted.run(request, first);
  ASSERT_EQ(first.text.size(), 4U);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NE(first.text[i], first.text[j]);
  }
  EXPECT_EQ(first.finished.size(), 4U);
  EXPECT_EQ(first.stats->prompt_tokens, 7) << "the prompt is counted once";
  EXPECT_EQ(first.stats->generated_tokens, 80);
  Collector second;
  scripted.run(request, second);
  EXPECT_EQ(second.text, first.text);
  request.options.n = 1;
  Collector lone;
  scripted.run(request, lone);
  EXPECT_EQ(lone.text[0], first.text[0]) << "a choice doesn't depend on how many there are";
}

TEST(Engine, LogprobsListWhatWasAskedAndConcatenateToTheText) {
  for (const std::int32_t top : {0, 3}) {
    ScriptedEngine scripted({"He", "\xe6", "\xb0\xb4", "l", "o ST", "OP!"});
    auto request = ScriptedEngine::request();
    request.options.top_logprobs = top;
    request.options.stops = {"STOP"};
    Collector reply;
    scripted.run(request, reply);
    EXPECT_EQ(reply.text[0], "He水lo ");
    EXPECT_EQ(bytes_of(reply.logprobs[0]), reply.text[0]);
    for (const TextDelta::Token& token : reply.logprobs[0]) {
      EXPECT_TRUE(token.has_logprob);
      EXPECT_TRUE(std::isfinite(token.token.logprob));
      EXPECT_LE(token.token.logprob, 0.0F);
      ASSERT_EQ(token.top.size(), static_cast<std::size_t>(top));
      if (top > 0) {
        EXPECT_EQ(token.top.front().id, token.token.id) << "greedy";
      }
    }
  }
}

TEST(Engine, EndOfSequenceIsNotListed) {
  ScriptedEngine scripted({"a"});
  auto request = ScriptedEngine::request();
  request.options.top_logprobs = 0;
  Collector reply;
  scripted.run(request, reply);
  EXPECT_EQ(reply.logprobs[0].size(), 1U);
  EXPECT_EQ(reply.stats->generated_tokens, 2);
}

TEST(Engine, EchoPutsThePromptFirst) {
  ScriptedEngine scripted({" yes"});
  auto request = ScriptedEngine::request("ok?|");
  request.options.echo = true;
  request.options.n = 2;
  request.options.stops = {"ok"};  // not in the prompt
  Collector plain;
  scripted.run(request, plain);
  EXPECT_EQ(plain.text[0], "ok?| yes");
  EXPECT_EQ(plain.text[1], "ok?| yes");
  EXPECT_TRUE(plain.logprobs.empty());

  for (const std::int64_t max_tokens : {0, 1}) {
    request.options.top_logprobs = 1;
    request.options.max_tokens = max_tokens;
    Collector scored;
    scripted.run(request, scored);
    EXPECT_EQ(scored.text[1], max_tokens == 0 ? "ok?|" : "ok?| yes");
    EXPECT_EQ(bytes_of(scored.logprobs[1]), scored.text[1]);
    ASSERT_EQ(scored.logprobs[1].size(), 4U + static_cast<std::size_t>(max_tokens));
    EXPECT_FALSE(scored.logprobs[1][0].has_logprob);
    EXPECT_TRUE(scored.logprobs[1][1].has_logprob);
    EXPECT_LT(scored.logprobs[1][1].token.logprob, 0.0F);
  }
}

TEST(Engine, AModelThatFailsFailsItsRequestAlone) {
  ScriptedEngine scripted({"a", "b", "c"});
  for (const int failing : {0, 2}) {
    scripted.hook->set([&, first = scripted.hook->passes.load()](int pass) {
      if (pass == first + failing) throw std::runtime_error("broken");
    });
    Collector broken;
    scripted.run(ScriptedEngine::request(), broken);
    ASSERT_TRUE(broken.error);
    EXPECT_EQ(broken.error->code, ErrorCode::kInternal);
    Collector next;
    scripted.run(ScriptedEngine::request(), next);
    EXPECT_EQ(next.text[0], "abc");
  }
}

}  // namespace
}  // namespace quern::engine
