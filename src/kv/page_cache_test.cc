// Sharing, copy-on-write, eviction and caps, by example and by random operations against a plain model.
#include "quern/kv/page_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace quern::kv {
namespace {

PageCacheOptions options(std::int64_t pages, std::optional<std::uint64_t> prefix_pages = {}) {
  PageCacheOptions made{
      .page_tokens = 4, .page_bytes = 100, .budget_bytes = static_cast<std::uint64_t>(pages) * 100 + 99};
  if (prefix_pages) made.prefix_max_bytes = *prefix_pages * 100;
  return made;
}

std::vector<TokenId> counted(TokenId first, int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Reserves and commits what the prompt lacks.
void fill(PageCache& cache, Sequence& sequence, std::span<const TokenId> prompt) {
  const auto rest = prompt.subspan(sequence.tokens.size());
  ASSERT_TRUE(cache.reserve(sequence, std::ssize(rest)));
  cache.commit(sequence, rest);
}

Sequence run(PageCache& cache, std::span<const TokenId> prompt, const std::string& name_space = "") {
  Sequence sequence = cache.open(name_space, prompt, std::ssize(prompt));
  fill(cache, sequence, prompt);
  return sequence;
}

TEST(PageCache, CountsPagesByTheBudget) {
  PageCache cache(options(5));
  EXPECT_EQ(cache.total_pages(), 5);
  EXPECT_EQ(cache.available_pages(), 5);
  EXPECT_EQ(cache.pages_for(0), 0);
  EXPECT_EQ(cache.pages_for(4), 1);
  EXPECT_EQ(cache.pages_for(5), 2);
}

TEST(PageCache, ASecondPromptFindsTheFullPagesOfTheFirst) {
  PageCache cache(options(8));
  const auto prompt = counted(1, 10);
  Sequence first = run(cache, prompt);
  Sequence second = cache.open("", prompt, 10);
  EXPECT_EQ(second.tokens.size(), 8U);
  EXPECT_EQ(second.pages[0], first.pages[0]) << "while the first still runs";
  EXPECT_EQ(cache.report().prefix_hits, 1U);
  EXPECT_EQ(cache.report().prefix_misses, 1U);
  const Sequence* open[] = {&first, &second};
  EXPECT_TRUE(cache.check_integrity(open));
  cache.close(first);
  cache.close(second);
  EXPECT_EQ(cache.cached_tokens("", prompt), 8);
  EXPECT_EQ(cache.report().held_bytes, 0U);
  EXPECT_EQ(cache.report().prefix_bytes, 200U);
}

TEST(PageCache, TheLastTokenIsAlwaysComputed) {
  PageCache cache(options(8));
  const auto prompt = counted(1, 8);
  Sequence first = run(cache, prompt);
  cache.close(first);
  EXPECT_EQ(cache.cached_tokens("", prompt), 4) << "all 8 are cached, but one must give the logits";
}

TEST(PageCache, NameSpacesDoNotShare) {
  PageCache cache(options(8));
  const auto prompt = counted(1, 9);
  Sequence first = run(cache, prompt, "tenant a");
  cache.close(first);
  EXPECT_EQ(cache.cached_tokens("tenant b", prompt), 0);
  EXPECT_EQ(cache.cached_tokens("tenant a", prompt), 8);
}

TEST(PageCache, ADifferentPrefixIsNotFoundByAnEqualPage) {
  PageCache cache(options(8));
  Sequence first = run(cache, std::vector<TokenId>{1, 1, 1, 1, 2, 2, 2, 2, 3});
  cache.close(first);
  EXPECT_EQ(cache.cached_tokens("", std::vector<TokenId>{9, 9, 9, 9, 2, 2, 2, 2, 3}), 0);
  EXPECT_EQ(cache.cached_tokens("", std::vector<TokenId>{2, 2, 2, 2, 3}), 0);
}

TEST(PageCache, AForkCopiesThePartialPageOnItsFirstWrite) {
  PageCache cache(options(8));
  Sequence first = run(cache, counted(1, 6));
  Sequence second = cache.fork(first);
  EXPECT_EQ(second.pages, first.pages);
  const auto copies = cache.reserve(second, 1);
  ASSERT_TRUE(copies);
  ASSERT_EQ(copies->size(), 1U);
  EXPECT_EQ(copies->front().from, first.pages[1]);
  EXPECT_EQ(copies->front().to, second.pages[1]);
  EXPECT_NE(second.pages[1], first.pages[1]);
  EXPECT_THAT(*cache.reserve(first, 1), testing::IsEmpty()) << "the page is the first's own now";
  const Sequence* open[] = {&first, &second};
  EXPECT_TRUE(cache.check_integrity(open));
  cache.close(first);
  cache.close(second);
}

TEST(PageCache, RowsThatComputeTheSamePageEndUpSharingIt) {
  PageCache cache(options(8));
  const auto prompt = counted(1, 5);
  Sequence first = cache.open("", prompt, 5);
  Sequence second = cache.open("", prompt, 5);
  fill(cache, first, prompt);
  fill(cache, second, prompt);
  EXPECT_EQ(first.pages[0], second.pages[0]);
  EXPECT_EQ(cache.available_pages(), 8 - 3);
  cache.close(first);
  cache.close(second);
}

TEST(PageCache, ARefusedReserveChangesNothing) {
  PageCache cache(options(2));
  Sequence first = run(cache, counted(1, 5));
  const auto before = first.pages;
  const auto refused = cache.reserve(first, 8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMemoryAdmission);
  EXPECT_EQ(first.pages, before);
  EXPECT_TRUE(cache.reserve(first, 3));
  cache.close(first);
}

TEST(PageCache, ThePrefixCacheGivesWayLeastRecentlyUsedFirst) {
  PageCache cache(options(4));
  const auto a = counted(100, 5);
  const auto b = counted(200, 5);
  for (const auto& prompt : {a, b}) {
    Sequence sequence = run(cache, prompt);
    cache.close(sequence);
  }
  Sequence again = run(cache, a);  // a is used more recently than b
  cache.close(again);
  Sequence large = run(cache, counted(300, 12));
  EXPECT_EQ(cache.cached_tokens("", b), 0);
  EXPECT_EQ(cache.cached_tokens("", a), 4);
  cache.close(large);
}

TEST(PageCache, APageGoesBeforeTheOneItContinues) {
  PageCache cache(options(4));
  const auto prompt = counted(1, 13);
  Sequence first = run(cache, prompt);
  cache.close(first);
  Sequence other = run(cache, counted(100, 5));
  EXPECT_EQ(cache.cached_tokens("", prompt), 8) << "the end went, the beginning stayed";
  cache.close(other);
}

TEST(PageCache, TheCapOnPrefixesHolds) {
  PageCache cache(options(10, 2));
  for (TokenId first = 0; first < 10; ++first) {
    Sequence sequence = run(cache, counted(first * 100, 5));
    cache.close(sequence);
    EXPECT_LE(cache.report().prefix_bytes, 200U);
  }
}

TEST(PageCache, ARowLargerThanTheCapDoesNotDriveOthersOut) {
  PageCache cache(options(10, 2));
  const auto small = counted(1, 9);
  Sequence first = run(cache, small);
  cache.close(first);
  Sequence large = run(cache, counted(100, 20));
  cache.close(large);
  EXPECT_EQ(cache.cached_tokens("", small), 8);
}

TEST(PageCache, TheProjectionMayExceedTheBudget) {
  PageCache cache(options(2));
  Sequence first = cache.open("", counted(1, 3), 100);
  EXPECT_EQ(cache.report().projected_bytes, 2500U);
  EXPECT_EQ(cache.report().budget_bytes, 299U);
  cache.close(first);
  EXPECT_EQ(cache.report().projected_bytes, 0U);
}

TEST(PageCache, TenThousandPromptsLeaveNothingBehind) {
  PageCache cache(options(16));
  for (TokenId i = 0; i < 10'000; ++i) {
    Sequence sequence = run(cache, counted(i * 7, 30));
    cache.close(sequence);
    ASSERT_LE(cache.report().prefix_bytes, 1600U);
  }
  EXPECT_TRUE(cache.check_integrity({}));
  cache.clear_prefixes();
  EXPECT_EQ(cache.report().prefix_bytes, 0U);
  EXPECT_EQ(cache.available_pages(), 16);
}

// Plays the part of the storage: what stands at a token's place is a digest of all tokens up to it and of the name
// space. A row that ever sees a page of somebody else's, stale or half copied, reads another digest than its own tokens
// give.
class Model {
 public:
  explicit Model(std::uint32_t seed, std::optional<std::uint64_t> cap)
      : cache_(options(24, cap)), random_(seed), storage_(24) {}

  void step() {
    const int choice = pick(10);
    if (choice < 3 || rows_.empty()) {
      open();
    } else if (choice < 7) {
      extend(*rows_[pick(static_cast<int>(rows_.size()))]);
    } else if (choice == 7) {
      if (rows_.size() < 6)
        rows_.push_back(std::make_unique<Sequence>(cache_.fork(*rows_[pick(static_cast<int>(rows_.size()))])));
    } else if (choice == 8 || pick(50) != 0) {
      const auto row = rows_.begin() + pick(static_cast<int>(rows_.size()));
      cache_.close(**row);
      rows_.erase(row);
    } else {
      cache_.clear_prefixes();
    }
    check();
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }

  void open() {
    if (rows_.size() >= 6) return;
    std::vector<TokenId> prompt(static_cast<std::size_t>(1 + pick(20)));
    for (TokenId& token : prompt) token = pick(10) == 0 ? 1 : 0;  // few differences: many shared prefixes
    const std::string name_space = pick(4) == 0 ? "b" : "a";
    const auto found = cache_.cached_tokens(name_space, prompt);
    rows_.push_back(std::make_unique<Sequence>(cache_.open(name_space, prompt, std::ssize(prompt) + pick(9))));
    EXPECT_EQ(std::ssize(rows_.back()->tokens), found);
    EXPECT_TRUE(std::ranges::equal(rows_.back()->tokens, std::span(prompt).first(static_cast<std::size_t>(found))));
    write(*rows_.back(), std::span<const TokenId>(prompt).subspan(static_cast<std::size_t>(found)));
  }

  void extend(Sequence& row) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(1 + pick(3)));
    for (TokenId& token : tokens) token = pick(2);
    write(row, tokens);
  }

  void write(Sequence& row, std::span<const TokenId> tokens) {
    const auto before = row.pages;
    const auto available = cache_.available_pages();
    const auto copies = cache_.reserve(row, std::ssize(tokens));
    if (!copies) {
      EXPECT_EQ(row.pages, before);
      EXPECT_EQ(cache_.available_pages(), available);
      return;
    }
    for (const PageCopy& copy : *copies) storage_[copy.to] = storage_[copy.from];
    std::vector<TokenId> all = row.tokens;
    for (const TokenId token : tokens) {
      all.push_back(token);
      const auto position = all.size() - 1;
      storage_[row.pages[position / 4]][position % 4] = digest(row.name_space, all);
    }
    cache_.commit(row, tokens);
  }

  static std::string digest(const std::string& name_space, std::span<const TokenId> tokens) {
    std::string text = name_space;
    for (const TokenId token : tokens) text += static_cast<char>('0' + token);
    return text;
  }

  void check() {
    std::vector<const Sequence*> open;
    for (const auto& row : rows_) {
      open.push_back(row.get());
      for (std::size_t i = 0; i < row->tokens.size(); ++i) {
        ASSERT_EQ(storage_[row->pages[i / 4]][i % 4], digest(row->name_space, std::span(row->tokens).first(i + 1)));
      }
    }
    const auto sound = cache_.check_integrity(open);
    ASSERT_TRUE(sound) << sound.error().message;
  }

  PageCache cache_;
  std::mt19937 random_;
  std::vector<std::array<std::string, 4>> storage_;
  std::vector<std::unique_ptr<Sequence>> rows_;
};

class PageCacheModel : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PageCacheModel, RandomOperationsAgreeWithThePlainModel) {
  Model model(GetParam(), GetParam() % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(5));
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) model.step();
}

INSTANTIATE_TEST_SUITE_P(Seeds, PageCacheModel, testing::Range(1U, 9U));

}  // namespace
}  // namespace quern::kv
