// Tests of StopMatcher.
#include "quern/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace quern::text {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend void PrintTo(const Outcome& outcome, std::ostream* out) {
    *out << '"' << outcome.text << '"' << (outcome.stopped ? " stopped" : "");
  }
};

// By the rule's own words: the first moment at which some stop is completed; of those completed then, the one that
// began first.
Outcome expected(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string seen = text.substr(0, end);
    for (std::size_t begin = 0; begin < end; ++begin) {
      for (const std::string& stop : stops) {
        if (!stop.empty() && seen.substr(begin) == stop) return {seen.substr(0, begin), true};
      }
    }
  }
  return {text, false};
}

Outcome run(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    StopMatcher::Step step = matcher.push(piece);
    outcome.text += step.text;
    if (step.stopped) {
      outcome.stopped = true;
      return outcome;
    }
  }
  outcome.text += matcher.finish();
  return outcome;
}

TEST(StopMatcher, NothingOfAStopLeaks) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.push("abcS").text, "abc");
  EXPECT_EQ(matcher.push("TO").text, "");
  EXPECT_EQ(matcher.push("x").text, "STOx");
  const StopMatcher::Step last = matcher.push("1STOP2");
  EXPECT_EQ(last.text, "1");
  EXPECT_TRUE(last.stopped);
}

TEST(StopMatcher, WhatWasHeldIsFlushedAtTheEnd) {
  StopMatcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.push("hello\n\nUs").text, "hello");
  EXPECT_EQ(matcher.finish(), "\n\nUs");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, ACompletedStopEndsWhileALongerOneIsPartial) {
  EXPECT_EQ(run({"abc"}, {"abcd", "bc"}), (Outcome{"a", true}));
  EXPECT_EQ(run({"a", "b", "c"}, {"abcd", "bc"}), (Outcome{"a", true}));
}

TEST(StopMatcher, OfSeveralInOnePieceTheFirstCounts) {
  EXPECT_EQ(run({"one two three"}, {"three", "two"}), (Outcome{"one ", true}));
  EXPECT_EQ(run({"xaab"}, {"ab", "aab"}), (Outcome{"x", true}));
}

TEST(StopMatcher, EmptyStringsAreNoStops) {
  EXPECT_EQ(run({"a", "", "b"}, {""}), (Outcome{"ab", false}));
  EXPECT_EQ(run({}, {}), (Outcome{"", false}));
}

TEST(StopMatcher, EverySplitGivesTheSame) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto word = [&](int most) {
    std::string text;
    for (int i = draw(most); i > 0; --i) text += static_cast<char>('a' + draw(1));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    const std::string text = word(9);
    std::vector<std::string> stops;
    for (int i = draw(3); i > 0; --i) stops.push_back(word(4));
    const Outcome want = expected(text, stops);
    const std::size_t cuts = text.empty() ? 0 : text.size() - 1;
    for (std::size_t mask = 0; mask < (std::size_t{1} << cuts); ++mask) {
      std::vector<std::string> pieces(1);
      for (std::size_t i = 0; i < text.size(); ++i) {
        pieces.back() += text[i];
        if (i < cuts && (mask >> i & 1) != 0) pieces.emplace_back();
      }
      ASSERT_EQ(run(pieces, stops), want) << text << " in " << pieces.size() << " pieces";
    }
  }
}

}  // namespace
}  // namespace quern::text
