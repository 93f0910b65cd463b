// Tests of the incremental detokenizer, over a tokenizer whose tokens are given bytes.
#include "quern/text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "quern/text/utf8.h"

namespace quern::text {
namespace {

// Token i stands for texts[i]; one that is empty is special.
class ListTokenizer final : public Tokenizer {
 public:
  explicit ListTokenizer(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  Result<std::vector<TokenId>> encode(std::string_view, Special) const override { return std::vector<TokenId>(); }
  std::string token_bytes(TokenId id, bool first) const override {
    const std::string& text = texts_[static_cast<std::size_t>(id)];
    return first && text.starts_with(' ') ? text.substr(1) : text;
  }
  std::optional<std::string> token_text(TokenId id) const override { return texts_[static_cast<std::size_t>(id)]; }
  std::optional<TokenId> token_id(std::string_view) const override { return std::nullopt; }
  bool is_special(TokenId id) const override { return texts_[static_cast<std::size_t>(id)].empty(); }
  std::span<const std::string> special_texts() const override { return {}; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(texts_.size()); }
  bool add_bos() const override { return false; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::span<const TokenId> eos_set() const override { return {}; }

 private:
  std::vector<std::string> texts_;
};

TEST(Detokenizer, ACharacterComesWhole) {
  const ListTokenizer tokenizer({"a", "\xF0\x9F", "\x98", "\x80!", "\xE2\x82"});
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(0), "a");
  EXPECT_EQ(detokenizer.push(1), "");
  EXPECT_EQ(detokenizer.push(2), "");
  EXPECT_TRUE(detokenizer.holds_partial());
  EXPECT_EQ(detokenizer.push(3), "😀!");
  EXPECT_FALSE(detokenizer.holds_partial());
  EXPECT_EQ(detokenizer.push(4), "");
  EXPECT_EQ(detokenizer.push(0), "\uFFFDa");  // certain only now
}

TEST(Detokenizer, OnlyTheBeginningOfATextDropsItsSpace) {
  const ListTokenizer tokenizer({" a", ""});
  Detokenizer reply(tokenizer);
  EXPECT_EQ(reply.push(1), "");  // special: the text hasn't begun
  EXPECT_EQ(reply.push(0), "a");
  EXPECT_EQ(reply.push(0), " a");
  Detokenizer continued(tokenizer, true);
  EXPECT_EQ(continued.push(0), " a");
}

// What isn't UTF-8, with what Python's bytes.decode(errors="replace") gives.
TEST(Utf8, InvalidBytesBecomeOneMarkForEachLongestBeginning) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xFF", "\uFFFD"},
      {"\x80\x80", "\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xF0\x9F\x98x", "\uFFFDx"},
      {"\xE2\x82\xE2\x82\xAC", "\uFFFD€"},
      {"\xF1\x80\x80\xE1\x80\xC2z", "\uFFFD\uFFFD\uFFFDz"},
  };
  for (const auto& [bytes, want] : cases) {
    std::string held = bytes;
    EXPECT_EQ(take_whole_characters(held), want);
    EXPECT_EQ(held, "");
  }
}

TEST(Utf8, EverySplitGivesTheSame) {
  std::mt19937 random(11);
  constexpr std::string_view kBytes = "a\x80\xBF\xC2\xC0\xE0\xA0\xED\x9F\xE2\x82\xF0\x90\xF4\x8F\xFF\x98";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes += kBytes[random() % kBytes.size()];
    std::string whole = bytes;
    const std::string want = take_whole_characters(whole);
    std::string held;
    std::string got;
    for (const char byte : bytes) {
      held += byte;
      got += take_whole_characters(held);
      ASSERT_LE(held.size(), 3u);
    }
    ASSERT_EQ(got, want);
    ASSERT_EQ(held, whole);
  }
}

}  // namespace
}  // namespace quern::text
