// What may be shown of a choice's tokens: against a plain definition over random texts, cuts and stops.
#include "quern/engine/choice_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/piece_tokenizer.h"

namespace quern::engine {
namespace {

using tests::PieceTokenizer;

/// Length of the longest prefix that ends between characters; `text` is valid up to its end, which may be cut.
std::size_t whole_characters(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const auto lead = static_cast<unsigned char>(text[end]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (end + length > text.size()) break;
    end += length;
  }
  return end;
}

std::string bytes_of(const std::vector<TextDelta::Token>& tokens) {
  std::string bytes;
  for (const TextDelta::Token& token : tokens) bytes += token.token.bytes;
  return bytes;
}

sampling::Logprobs some_logprobs() {
  return {-0.5F, {{0, -0.5F}, {1, -1.5F}}};
}

struct Shown {
  std::string text;
  std::string bytes;  // of the log probabilities
  bool stopped = false;
  std::size_t tokens = 0;
};

/// Pushes pieces until a stop or the end; checks each delta on the way.
Shown show(const std::vector<std::string>& pieces, const std::vector<std::string>& stops, std::int64_t min_tokens = 0) {
  const PieceTokenizer tokenizer(pieces);
  ChoiceText choice(tokenizer, stops, min_tokens);
  Shown shown;
  const auto take = [&](const ChoiceText::Piece& piece) {
    EXPECT_EQ(whole_characters(piece.text), piece.text.size()) << "half a character in a delta";
    shown.text += piece.text;
    shown.bytes += bytes_of(piece.logprobs);
    EXPECT_TRUE(std::string_view(shown.text).starts_with(shown.bytes)) << "a token listed before its text is shown";
    shown.stopped = piece.stopped;
  };
  for (std::size_t i = 0; i < pieces.size() && !shown.stopped; ++i) {
    take(choice.push(static_cast<text::TokenId>(i), some_logprobs()));
    ++shown.tokens;
  }
  if (!shown.stopped) take(choice.finish());
  return shown;
}

TEST(ChoiceText, EqualsThePlainDefinition) {
  const std::vector<std::string> characters = {"a", "b", "c", "é", "水", "🙂", "🏽", "\n"};
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t i = 0, count = random() % 14; i < count; ++i) text += characters[random() % characters.size()];
    if (random() % 4 == 0 && !text.empty()) text.pop_back();  // the end may cut a character
    std::vector<std::string> pieces;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = 1 + random() % 5;
      pieces.push_back(text.substr(begin, length));
      begin += pieces.back().size();
    }
    std::vector<std::string> stops;
    for (std::size_t i = 0, count = random() % 3; i < count; ++i) {
      std::string stop;
      for (std::size_t j = 0, length = random() % 4; j < length; ++j) stop += characters[random() % characters.size()];
      stops.push_back(stop);
    }

    // The first byte that completes a stop ends the text; of several completed there the one that begins first is cut.
    const std::string whole = text.substr(0, whole_characters(text));
    std::size_t end = whole.size() + 1;
    std::size_t cut = whole.size();
    for (const std::string& stop : stops) {
      const std::size_t at = stop.empty() ? std::string::npos : whole.find(stop);
      if (at == std::string::npos || at + stop.size() > end || (at + stop.size() == end && at > cut)) continue;
      end = at + stop.size();
      cut = at;
    }
    Shown expected;
    expected.stopped = end <= whole.size();
    for (std::size_t seen = 0; expected.tokens < pieces.size() && (seen < end || !expected.stopped);) {
      seen += pieces[expected.tokens++].size();
    }
    const std::string expected_text = whole.substr(0, cut);
    const Shown shown = show(pieces, stops);
    ASSERT_EQ(shown.text, expected_text) << "round " << round << ", pieces " << testing::PrintToString(pieces)
                                         << ", stops " << testing::PrintToString(stops);
    EXPECT_EQ(shown.bytes, shown.text);
    EXPECT_EQ(shown.stopped, expected.stopped);
    EXPECT_EQ(shown.tokens, expected.tokens);
  }
}

TEST(ChoiceText, StopsCountFromMinTokensOn) {
  EXPECT_EQ(show({"a", "X", "b", "X", "c"}, {"X"}).text, "a");
  EXPECT_EQ(show({"a", "X", "b", "X", "c"}, {"X"}, 2).text, "a");
  EXPECT_EQ(show({"a", "X", "b", "X", "c"}, {"X"}, 3).text, "aXb");
  EXPECT_EQ(show({"a", "X", "b", "X", "c"}, {"X"}, 5).text, "aXbXc");
}

TEST(ChoiceText, ATokenThatAStopCutsKeepsItsShownBytes) {
  const Shown shown = show({"one", "two END three", "four"}, {" END"});
  EXPECT_EQ(shown.text, "onetwo");
  EXPECT_EQ(shown.bytes, "onetwo");
  EXPECT_EQ(shown.tokens, 2U);
}

TEST(ChoiceText, InvalidBytesDoNotShiftWhatComesAfter) {
  const PieceTokenizer tokenizer({"\xff", "ok", "\xf0\x9f", "x"});
  ChoiceText choice(tokenizer, {}, 0);
  std::string text;
  std::vector<std::size_t> listed;
  for (text::TokenId id = 0; id < 4; ++id) {
    const auto piece = choice.push(id, some_logprobs());
    text += piece.text;
    listed.push_back(piece.logprobs.size());
  }
  EXPECT_EQ(choice.finish().text, "");
  EXPECT_TRUE(text.starts_with("\uFFFDok\uFFFD")) << text;
  EXPECT_TRUE(text.ends_with("x"));
  EXPECT_EQ(listed, (std::vector<std::size_t>{1, 1, 0, 2}));
}

TEST(ChoiceText, ListsNothingThatWasNotAskedFor) {
  const PieceTokenizer tokenizer({"a"});
  ChoiceText choice(tokenizer, {}, 0);
  EXPECT_TRUE(choice.push(0, std::nullopt).logprobs.empty());
}

TEST(ChoiceText, ContinuesACharacterThatThePromptLeftOpen) {
  const PieceTokenizer tokenizer({"a", "\xf0\x9f\x99", "\x82", "b"});
  const std::vector<text::TokenId> prompt = {0, 1};
  ChoiceText plain(tokenizer, {}, 0);
  plain.follow(prompt);
  EXPECT_EQ(plain.push(2, std::nullopt).text, "🙂");
  ChoiceText echoing(tokenizer, {}, 0);
  EXPECT_EQ(echoing.echo(prompt, std::nullopt).text, "a");
  EXPECT_EQ(echoing.push(2, std::nullopt).text, "🙂");
}

TEST(ChoiceText, EchoListsThePromptItsFirstTokenWithoutALogprob) {
  const PieceTokenizer tokenizer({"a", "b"});
  const text::TokenId bos = *tokenizer.bos();
  const text::TokenId eos = tokenizer.eos_set().front();
  ChoiceText choice(tokenizer, {"b"}, 0);
  const auto piece =
      choice.echo(std::vector<text::TokenId>{bos, 0, eos, 1}, std::vector<sampling::Logprobs>(3, some_logprobs()));
  EXPECT_EQ(piece.text, "a<eos>b") << "a stop is not looked for in the prompt";
  EXPECT_EQ(bytes_of(piece.logprobs), piece.text);
  ASSERT_EQ(piece.logprobs.size(), 4U);
  EXPECT_FALSE(piece.logprobs[0].has_logprob);
  EXPECT_TRUE(piece.logprobs[1].has_logprob);
  EXPECT_EQ(piece.logprobs[1].top.size(), 2U);
}

}  // namespace
}  // namespace quern::engine
