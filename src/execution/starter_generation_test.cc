// With real weights and the processor's own kernels: the same bits whatever the chunks, threads and choices beside.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "quern/execution/generation.h"
#include "quern/execution/resident_model.h"
#include "support/starter.h"

namespace quern::execution {
namespace {

/// Tokens and log probabilities of each choice.
class Recorder final : public TokenSink {
 public:
  using Drawn = std::pair<std::int32_t, float>;
  void on_prompt(std::vector<sampling::Logprobs>) override {}
  void on_token(std::int32_t choice, std::int32_t token, std::optional<sampling::Logprobs> logprobs) override {
    drawn[choice].emplace_back(token, logprobs->logprob);
  }
  void on_end(std::int32_t, EndReason) override {}
  [[nodiscard]] bool stopped(std::int32_t) const override { return false; }

  std::map<std::int32_t, std::vector<Drawn>> drawn;
};

std::map<std::int32_t, std::vector<Recorder::Drawn>> generate(int threads, std::int32_t chunk_tokens, std::int32_t n,
                                                              float temperature) {
  ResidentModelOptions options;
  options.model = test::starter_model()->string();
  options.threads = threads;
  options.context = 512;
  options.chunk_tokens = chunk_tokens;
  const auto resident = load_resident_model(options, {}, {});
  EXPECT_TRUE(resident) << resident.error().message;
  GenerationRequest request;
  for (std::int32_t i = 0; i < 301; ++i) request.prompt.push_back(1000 + i * 37 % 5000);  // past a block of keys
  request.sampling.temperature = temperature;
  request.max_tokens = 20;
  request.vocab = resident->runner->config().vocab;
  request.n = n;
  request.top_logprobs = 0;
  Recorder sink;
  Generation generation(*resident->runner, request, sink);
  while (!generation.done()) EXPECT_TRUE(generation.advance());
  return sink.drawn;
}

TEST(StarterGeneration, IsBitEqualWhateverTheChunksAndThreads) {
  if (!test::starter_model()) GTEST_SKIP() << test::kNoStarter;
  const auto expected = generate(1, 512, 1, 0.0F);
  ASSERT_EQ(expected.at(0).size(), 20U);
  for (const std::int32_t chunk : {7, 64, 256}) {
    for (const int threads : {1, 2}) {
      EXPECT_EQ(generate(threads, chunk, 1, 0.0F), expected) << chunk << " tokens a chunk, " << threads << " threads";
    }
  }
}

TEST(StarterGeneration, AChoiceIsBitEqualWhateverStandsBesideIt) {
  if (!test::starter_model()) GTEST_SKIP() << test::kNoStarter;
  EXPECT_EQ(generate(2, 256, 3, 1.0F).at(0), generate(2, 256, 1, 1.0F).at(0));
}

}  // namespace
}  // namespace quern::execution
