// Rows, page sharing and refusal, seen through a model that reads its history from the pages.
#include "quern/execution/batch_runner.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <stdexcept>

#include "support/scripted_model.h"

namespace quern::execution {
namespace {

constexpr std::int32_t kVocab = 64;

std::int32_t hash_of(std::span<const std::int32_t> history) {
  std::uint32_t hash = 17;
  for (const std::int32_t token : history) hash = (hash ^ static_cast<std::uint32_t>(token)) * 2654435761U;
  return static_cast<std::int32_t>((hash >> 8) % kVocab);
}

std::unique_ptr<tests::ScriptedModel> hash_model() {
  return std::make_unique<tests::ScriptedModel>(kVocab, 1000, tests::ScriptedModel::favour(hash_of));
}

std::int32_t best(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(count);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % kVocab);
  return tokens;
}

TEST(BatchRunner, ChunksSeeTheWholeHistory) {
  const auto runner = tests::scripted_runner(hash_model(), {.pages = 20});
  const auto tokens = some_tokens(100, 1);
  for (const std::size_t chunk : {1U, 7U, 16U, 33U, 100U}) {
    const RowId row = runner->open({}, 0);
    std::int32_t last = -1;
    for (std::size_t first = 0; first < tokens.size(); first += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - first);
      const RowWork work{row, std::span(tokens).subspan(first, count), RowWork::Outputs::kLast};
      last = best(runner->run({&work, 1}).value());
      EXPECT_TRUE(runner->check_integrity());
    }
    EXPECT_EQ(last, hash_of(tokens)) << "chunk " << chunk;
    EXPECT_EQ(runner->stored_tokens(row), 100);
    runner->close(row);
    EXPECT_EQ(runner->available_pages(), 20);
  }
}

TEST(BatchRunner, OutputsComeInTheOrderOfTheWork) {
  const auto runner = tests::scripted_runner(hash_model(), {.pages = 20});
  const auto a = some_tokens(5, 1);
  const auto b = some_tokens(3, 2);
  const auto c = some_tokens(18, 3);
  const std::vector<RowWork> work = {{runner->open({}, 0), a, RowWork::Outputs::kAll},
                                     {runner->open({}, 0), b, RowWork::Outputs::kNone},
                                     {runner->open({}, 0), c, RowWork::Outputs::kLast}};
  const auto logits = runner->run(work).value();
  ASSERT_EQ(logits.size(), 6U * kVocab);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(best(logits.subspan(i * kVocab, kVocab)), hash_of(std::span(a).first(i + 1)));
  }
  EXPECT_EQ(best(logits.last(kVocab)), hash_of(c));
}

// Every way of a fork's life, at every offset in the last page: each row's tokens stay its own.
TEST(BatchRunner, ForksShareThePromptAndNothingElse) {
  for (std::size_t prompt_tokens = 14; prompt_tokens <= 34; ++prompt_tokens) {
    const auto runner = tests::scripted_runner(hash_model(), {.pages = 40});
    std::vector<std::vector<std::int32_t>> histories(4, some_tokens(prompt_tokens, 1));
    std::vector<RowId> rows = {runner->open({}, 0)};
    const RowWork prompt{rows[0], histories[0], RowWork::Outputs::kNone};
    ASSERT_TRUE(runner->run({&prompt, 1}));
    const std::int64_t shared = runner->available_pages();
    for (int i = 1; i < 4; ++i) rows.push_back(runner->fork(rows[0]));
    EXPECT_EQ(runner->available_pages(), shared) << "a fork takes no page";
    EXPECT_TRUE(runner->check_integrity());
    for (std::uint32_t step = 0; step < 40; ++step) {
      std::vector<RowWork> work;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        histories[i].push_back(static_cast<std::int32_t>((step * 5 + i * 13) % kVocab));
        work.push_back({rows[i], std::span(histories[i]).last(1), RowWork::Outputs::kLast});
      }
      const auto logits = runner->run(work).value();
      EXPECT_TRUE(runner->check_integrity());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(best(logits.subspan(i * kVocab, kVocab)), hash_of(histories[i])) << prompt_tokens << " " << step;
      }
      if (step == 10) {
        runner->close(rows[1]);
        rows.erase(rows.begin() + 1);
        histories.erase(histories.begin() + 1);
      }
    }
    for (const RowId row : rows) runner->close(row);
    EXPECT_EQ(runner->available_pages(), 40);
    EXPECT_TRUE(runner->check_integrity());
  }
}

TEST(BatchRunner, ARowBeginsWithThePagesThatThePrefixCacheHas) {
  const auto runner = tests::scripted_runner(hash_model(), {.pages = 20});
  const auto tokens = some_tokens(40, 1);
  const RowId first = runner->open(tokens, 40);
  EXPECT_EQ(runner->stored_tokens(first), 0);
  const RowWork prompt{first, tokens, RowWork::Outputs::kLast};
  ASSERT_TRUE(runner->run({&prompt, 1}));
  runner->close(first);
  const RowId second = runner->open(tokens, 40);
  EXPECT_EQ(runner->stored_tokens(second), 32);
  const RowWork rest{second, std::span(tokens).subspan(32), RowWork::Outputs::kLast};
  EXPECT_EQ(best(runner->run({&rest, 1}).value()), hash_of(tokens));
  EXPECT_TRUE(runner->check_integrity());
}

TEST(BatchRunner, TheLastHolderWritesWithoutACopy) {
  const auto runner = tests::scripted_runner(hash_model(), {.pages = 1});
  const auto tokens = some_tokens(5, 1);
  const RowId row = runner->open({}, 0);
  const RowWork prompt{row, tokens, RowWork::Outputs::kNone};
  ASSERT_TRUE(runner->run({&prompt, 1}));
  const RowId fork = runner->fork(row);
  const RowWork next{fork, std::span(tokens).first(1), RowWork::Outputs::kLast};
  EXPECT_FALSE(runner->run({&next, 1})) << "the copy has no page";
  runner->close(row);
  EXPECT_TRUE(runner->run({&next, 1}));
}

TEST(BatchRunner, WhenPagesDontSufficeNothingChanges) {
  const auto runner = tests::scripted_runner(hash_model(), {.pages = 4});
  const auto tokens = some_tokens(40, 1);
  const RowId first = runner->open({}, 0);
  const RowId second = runner->open({}, 0);
  const RowWork fits{first, std::span(tokens).first(20), RowWork::Outputs::kNone};
  ASSERT_TRUE(runner->run({&fits, 1}));
  const std::vector<RowWork> work = {{first, std::span(tokens).subspan(20, 5), RowWork::Outputs::kLast},
                                     {second, tokens, RowWork::Outputs::kLast}};
  const auto refused = runner->run(work);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMemoryAdmission);
  EXPECT_EQ(runner->stored_tokens(first), 20);
  EXPECT_EQ(runner->stored_tokens(second), 0);
  EXPECT_EQ(runner->available_pages(), 2);
  EXPECT_TRUE(runner->check_integrity());
  EXPECT_EQ(best(runner->run(std::span(work).first(1)).value()), hash_of(std::span(tokens).first(25)));
}

TEST(BatchRunner, APassThatThrowsLeavesTheRowsUsable) {
  auto model = hash_model();
  bool throws = true;
  model->before_pass = [&](const ops::Batch&) {
    if (std::exchange(throws, false)) throw std::bad_alloc();
  };
  const auto runner = tests::scripted_runner(std::move(model), {.pages = 4});
  const auto tokens = some_tokens(40, 1);
  const RowId row = runner->open({}, 0);
  const RowWork work{row, tokens, RowWork::Outputs::kLast};
  EXPECT_THROW((void)runner->run({&work, 1}), std::bad_alloc);
  EXPECT_TRUE(runner->check_integrity());
  EXPECT_EQ(best(runner->run({&work, 1}).value()), hash_of(tokens));
  runner->close(row);
  EXPECT_EQ(runner->available_pages(), 4);
}

}  // namespace
}  // namespace quern::execution
