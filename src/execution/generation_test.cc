// One request's tokens, whatever the chunks, waves and pages; where it ends; that every row is given back.
#include "quern/execution/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "support/scripted_model.h"

namespace quern::execution {
namespace {

constexpr std::int32_t kVocab = 50;
constexpr std::int32_t kEos = 49;

/// Counts up from the last token of the prompt; 48 is followed by end of sequence.
std::int32_t count_up(std::span<const std::int32_t> history) {
  return (history.back() + 1) % kVocab;
}

std::unique_ptr<tests::ScriptedModel> counting_model() {
  return std::make_unique<tests::ScriptedModel>(kVocab, 4096, tests::ScriptedModel::favour(count_up));
}

/// Nearly even logits that depend on the whole history: what is drawn tells where it came from.
std::unique_ptr<tests::ScriptedModel> mixing_model() {
  return std::make_unique<tests::ScriptedModel>(kVocab, 4096,
                                                [](std::span<const std::int32_t> history, std::int32_t id) {
                                                  std::uint32_t hash = static_cast<std::uint32_t>(id) * 977;
                                                  for (const std::int32_t token : history)
                                                    hash = (hash ^ static_cast<std::uint32_t>(token)) * 2654435761U;
                                                  return static_cast<float>(hash >> 20) / 4096.0F;
                                                });
}

class Recorder final : public TokenSink {
 public:
  void on_prompt(std::vector<sampling::Logprobs> logprobs) override {
    ++prompts;
    prompt_logprobs = std::move(logprobs);
  }
  void on_token(std::int32_t choice, std::int32_t token, std::optional<sampling::Logprobs> logprobs) override {
    EXPECT_EQ(prompts, 1);
    EXPECT_FALSE(ends.contains(choice));
    tokens[choice].push_back(token);
    if (logprobs) token_logprobs[choice].push_back(*logprobs);
    if (after_token) after_token(choice);
  }
  void on_end(std::int32_t choice, EndReason reason) override { EXPECT_TRUE(ends.emplace(choice, reason).second); }
  [[nodiscard]] bool stopped(std::int32_t choice) const override { return stops.contains(choice); }

  int prompts = 0;
  std::vector<sampling::Logprobs> prompt_logprobs;
  std::map<std::int32_t, std::vector<std::int32_t>> tokens;
  std::map<std::int32_t, std::vector<sampling::Logprobs>> token_logprobs;
  std::map<std::int32_t, EndReason> ends;
  std::set<std::int32_t> stops;
  std::function<void(std::int32_t)> after_token;
};

GenerationRequest greedy(std::vector<std::int32_t> prompt, std::int64_t max_tokens) {
  GenerationRequest request{.prompt = std::move(prompt), .eos = {kEos}, .max_tokens = max_tokens, .vocab = kVocab};
  request.sampling.temperature = 0.0F;
  return request;
}

std::vector<std::int32_t> range(std::int32_t first, std::int32_t last) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(last - first + 1));
  std::iota(result.begin(), result.end(), first);
  return result;
}

/// Runs it to its end, checking the pages after each unit. Gives the number of units.
int run(BatchRunner& runner, const GenerationRequest& request, Recorder& sink) {
  int units = 0;
  {
    Generation generation(runner, request, sink);
    for (; !generation.done(); ++units) {
      const auto advanced = generation.advance();
      if (!advanced) ADD_FAILURE() << advanced.error().message;
      if (!advanced) break;
      EXPECT_TRUE(runner.check_integrity());
    }
  }
  EXPECT_EQ(runner.open_rows(), 0U);
  EXPECT_EQ(runner.available_pages(), runner.limits().pages);
  return units;
}

TEST(Generation, EndsAtEndOfSequenceWhichIsATokenOfTheReply) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 20});
  Recorder sink;
  run(*runner, greedy({40, 41, 42}, 100), sink);
  EXPECT_EQ(sink.tokens[0], range(43, 49));
  EXPECT_EQ(sink.ends[0], EndReason::kEndOfSequence);
}

TEST(Generation, EndsAtTheLength) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 20});
  for (const std::int32_t length : {1, 2, 7}) {
    Recorder sink;
    run(*runner, greedy({40, 41, 42}, length), sink);
    EXPECT_EQ(sink.ends[0], length == 7 ? EndReason::kEndOfSequence : EndReason::kLength);
    EXPECT_EQ(sink.tokens[0], range(43, 42 + length));
  }
}

TEST(Generation, IgnoresEndOfSequenceWhenAskedTo) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 20});
  Recorder sink;
  GenerationRequest request = greedy({47}, 4);
  request.ignore_eos = true;
  run(*runner, request, sink);
  EXPECT_EQ(sink.tokens[0], (std::vector<std::int32_t>{48, 49, 0, 1}));
  EXPECT_EQ(sink.ends[0], EndReason::kLength);
}

TEST(Generation, DrawsNoEndOfSequenceBeforeMinTokens) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 20});
  Recorder sink;
  GenerationRequest request = greedy({48}, 40);
  request.min_tokens = 3;
  run(*runner, request, sink);
  ASSERT_GE(sink.tokens[0].size(), 4U);
  EXPECT_EQ(std::ranges::count(std::span(sink.tokens[0]).first(3), kEos), 0);
}

TEST(Generation, NeverDrawsWhatTheTokenizerDoesNotKnow) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 20});
  Recorder sink;
  GenerationRequest request = greedy({10}, 30);
  request.vocab = 20;  // the model would count on to 39
  run(*runner, request, sink);
  EXPECT_LT(*std::ranges::max_element(sink.tokens[0]), 20);
}

TEST(Generation, MaxTokensZeroOnlyEvaluatesThePrompt) {
  const auto runner = tests::scripted_runner(counting_model(), {.pages = 1});
  Recorder sink;
  GenerationRequest request = greedy(range(0, 15), 0);  // fills the only page
  request.n = 2;
  run(*runner, request, sink);
  EXPECT_EQ(sink.prompts, 1);
  EXPECT_TRUE(sink.tokens.empty());
  EXPECT_EQ(sink.ends, (std::map<std::int32_t, EndReason>{{0, EndReason::kLength}, {1, EndReason::kLength}}));
}

TEST(Generation, IsTheSameForEveryChunkSize) {
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 150; ++i) prompt.push_back((i * 31 + i / 7) % kVocab);
  std::map<std::int32_t, std::vector<std::int32_t>> expected;
  for (const std::int32_t chunk : {1, 5, 16, 17, 64, 149, 150, 400}) {
    const auto runner = tests::scripted_runner(mixing_model(), {.pages = 60, .chunk_tokens = chunk});
    Recorder sink;
    GenerationRequest request = greedy(prompt, 30);
    request.eos = {};
    request.sampling.temperature = 1.0F;
    request.sampling.seed = 5;
    request.n = 3;
    const int units = run(*runner, request, sink);
    EXPECT_EQ(units, (150 + chunk - 1) / chunk + 29);
    if (expected.empty()) expected = sink.tokens;
    EXPECT_EQ(sink.tokens, expected) << "chunk " << chunk;
  }
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_NE(expected[1], expected[2]);
}

TEST(Generation, RunsChoicesInWavesOfWhatFits) {
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 37; ++i) prompt.push_back((i * 31) % kVocab);
  std::map<std::int32_t, std::vector<std::int32_t>> expected;
  // 37 + 30 tokens stored take five pages; the sixth is for the copy of the prompt's third.
  for (const std::int32_t pages : {100, 21, 11, 9, 7, 6}) {
    for (const std::int32_t max_rows : {32, 3, 1}) {
      const auto runner = tests::scripted_runner(mixing_model(), {.pages = pages, .max_rows = max_rows});
      Recorder sink;
      GenerationRequest request = greedy(prompt, 31);
      request.eos = {};
      request.sampling.temperature = 1.0F;
      request.n = 5;
      run(*runner, request, sink);
      if (expected.empty()) expected = sink.tokens;
      EXPECT_EQ(sink.tokens, expected) << pages << " pages, " << max_rows << " rows";
      EXPECT_EQ(sink.prompts, 1);
      EXPECT_EQ(sink.ends.size(), 5U);
    }
  }
}

TEST(Generation, AStoppedChoiceGivesItsRowBackAndTheOthersGoOn) {
  const auto runner = tests::scripted_runner(mixing_model(), {.pages = 60});
  GenerationRequest request = greedy({1, 2, 3}, 20);
  request.eos = {};
  request.sampling.temperature = 1.0F;
  request.n = 3;
  Recorder undisturbed;
  run(*runner, request, undisturbed);
  Recorder sink;
  sink.after_token = [&](std::int32_t choice) {
    if (choice == 1 && sink.tokens[1].size() == 4) sink.stops.insert(1);
  };
  run(*runner, request, sink);
  EXPECT_EQ(sink.tokens[1].size(), 4U);
  EXPECT_FALSE(sink.ends.contains(1));
  EXPECT_EQ(sink.tokens[0], undisturbed.tokens[0]);
  EXPECT_EQ(sink.tokens[2], undisturbed.tokens[2]);
}

TEST(Generation, GivesItsRowsBackWhereverItIsLeft) {
  const auto runner = tests::scripted_runner(mixing_model(), {.pages = 60, .chunk_tokens = 16});
  GenerationRequest request = greedy(range(0, 40), 20);
  request.eos = {};
  request.n = 3;
  for (int units = 0; units < 12; ++units) {
    Recorder sink;
    {
      Generation generation(*runner, request, sink);
      for (int i = 0; i < units; ++i) ASSERT_TRUE(generation.advance());
    }
    EXPECT_EQ(runner->open_rows(), 0U);
    EXPECT_EQ(runner->available_pages(), 60);
    EXPECT_TRUE(runner->check_integrity());
  }
}

TEST(Generation, LogitsThatAreNoNumbersFailIt) {
  auto model = std::make_unique<tests::ScriptedModel>(
      kVocab, 4096,
      [](std::span<const std::int32_t> history, std::int32_t) { return history.size() > 4 ? std::nanf("") : 0.0F; });
  const auto runner = tests::scripted_runner(std::move(model), {.pages = 60});
  Recorder sink;
  GenerationRequest request = greedy({1, 2, 3}, 20);
  request.n = 2;
  {
    Generation generation(*runner, request, sink);
    ASSERT_TRUE(generation.advance());
    ASSERT_TRUE(generation.advance());
    const auto failed = generation.advance();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::kInternal);
  }
  EXPECT_EQ(runner->available_pages(), 60);
}

TEST(Generation, APrefixThatIsCachedChangesNothingButTheWork) {
  const auto runner = tests::scripted_runner(mixing_model(), {.pages = 60, .chunk_tokens = 16});
  GenerationRequest request = greedy(range(0, 40), 20);
  request.eos = {};
  Recorder first;
  EXPECT_EQ(run(*runner, request, first), 3 + 19);
  Recorder second;
  EXPECT_EQ(run(*runner, request, second), 1 + 19);
  EXPECT_EQ(second.tokens, first.tokens);
  request.max_tokens = 0;
  const Generation third(*runner, request, second);
  EXPECT_EQ(third.cached_tokens(), 32);
}

TEST(Generation, LogprobsOfPromptAndOutputAreThoseOfTheModel) {
  const std::vector<std::int32_t> prompt = range(0, 40);
  for (const std::int32_t max_outputs : {1, 7, 64}) {
    auto model = mixing_model();
    std::vector<std::size_t> outputs;
    model->before_pass = [&](const ops::Batch& batch) { outputs.push_back(batch.outputs.size()); };
    const auto runner =
        tests::scripted_runner(std::move(model), {.pages = 60, .max_rows = 1, .max_outputs = max_outputs});
    Recorder sink;
    GenerationRequest request = greedy(prompt, 5);
    request.eos = {};
    request.top_logprobs = 3;
    request.prompt_logprobs = true;
    run(*runner, request, sink);
    EXPECT_LE(*std::ranges::max_element(outputs), static_cast<std::size_t>(max_outputs));
    ASSERT_EQ(sink.prompt_logprobs.size(), prompt.size() - 1);
    ASSERT_EQ(sink.token_logprobs[0].size(), 5U);
    for (std::size_t i = 0; i < sink.tokens[0].size(); ++i) {
      EXPECT_EQ(sink.token_logprobs[0][i].top.front().id, sink.tokens[0][i]) << "greedy: the best is the one";
    }
    // The prompt's own, against the model asked directly.
    const auto plain = mixing_model();
    for (std::size_t i = 1; i < prompt.size(); ++i) {
      double sum = 0.0;
      for (std::int32_t id = 0; id < kVocab; ++id) sum += std::exp(plain->score(std::span(prompt).first(i), id));
      EXPECT_NEAR(sink.prompt_logprobs[i - 1].logprob,
                  plain->score(std::span(prompt).first(i), prompt[i]) - std::log(sum), 1e-5);
      EXPECT_EQ(sink.prompt_logprobs[i - 1].top.size(), 3U);
    }
  }
}

}  // namespace
}  // namespace quern::execution
