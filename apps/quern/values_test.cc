// Values as people write them.
#include "values.h"

#include <gtest/gtest.h>

#include <array>

namespace quern::app {
namespace {

TEST(Values, Sizes) {
  const std::pair<std::string_view, std::uint64_t> cases[] = {
      {"0", 0},
      {"1024", 1024},
      {"7B", 7},
      {"2KiB", 2048},
      {"512MiB", 536'870'912},
      {"2GiB", 1ULL << 31U},
      {"1.5GiB", 3ULL << 29U},
      {"2 GB", 2'000'000'000},
      {"1TiB", 1ULL << 40U},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_size(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
  for (const std::string_view wrong : {"", "GiB", "-1", "2gib", "2GiBs", "1e30", "nan", "inf", "0x10"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(Values, IntegersAndNumbersKnowTheirRange) {
  EXPECT_EQ(parse_integer("65535", 0, 65535).value(), 65535);
  for (const std::string_view wrong : {"", "65536", "-1", "1.0", "1e3", " 1", "1 ", "99999999999999999999"}) {
    const auto parsed = parse_integer(wrong, 0, 65535);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidRequest);
    EXPECT_NE(parsed.error().message.find("from 0 to 65535"), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(parse_number("0.25", 0.0, 1.0).value(), 0.25);
  for (const std::string_view wrong : {"", "1.01", "-0.1", "nan", "inf", "x", "0.5x"}) {
    EXPECT_FALSE(parse_number(wrong, 0.0, 1.0)) << wrong;
  }
}

TEST(Values, SwitchesAndChoices) {
  for (const std::string_view word : {"true", "yes", "on", "1"}) EXPECT_TRUE(parse_switch(word).value()) << word;
  for (const std::string_view word : {"false", "no", "off", "0"}) EXPECT_FALSE(parse_switch(word).value()) << word;
  EXPECT_FALSE(parse_switch("maybe"));
  constexpr std::array<std::string_view, 2> kKinds = {"int8", "exact"};
  EXPECT_EQ(parse_choice("exact", kKinds).value(), 1U);
  const auto wrong = parse_choice("int4", kKinds);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "expected one of int8, exact, got 'int4'");
}

TEST(Values, PrintsSizes) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(98'362'432), "93.8 MiB");
}

TEST(Values, NearestNamesWhatWasMeant) {
  constexpr std::array<std::string_view, 3> kNames = {"port", "host", "kv_budget"};
  EXPECT_EQ(nearest("prot", kNames), "port");
  EXPECT_EQ(nearest("kv-budgt", kNames), "kv_budget");
  EXPECT_EQ(nearest("something-else", kNames), "");
}

TEST(Values, OneLineHoldsNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\x1b[31mc\x7f"), "a b [31mc ");
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace quern::app
