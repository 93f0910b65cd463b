// JSON values know where they stand; limits hold.
#include "quern/formats/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quern::formats {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(JsonValue, EachValueKnowsItsOffset) {
  const std::string text = R"( {"a" : [1, -2.5e0 ,true,null,"\u00e9\"x", {}, []], "b\n":{"c":12 } ,"d":7})";
  const auto root = parse_json(text, "file", {}, 100);
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->offset, 101U);
  const auto& object = std::get<JsonValue::Object>(root->content);
  const auto& list = std::get<JsonValue::List>(object.at("a").content);
  const char* const starts[] = {"1,", "-2.5", "true", "null", "\"\\u00e9", "{}", "[]"};
  ASSERT_EQ(list.size(), std::size(starts));
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].offset, 100 + text.find(starts[i])) << starts[i];
  EXPECT_EQ(std::get<std::string>(list[4].content), "\u00e9\"x");
  const auto& inner = std::get<JsonValue::Object>(object.at("b\n").content);
  EXPECT_EQ(inner.at("c").offset, 100 + text.find("12"));
  EXPECT_EQ(object.at("d").offset, 100 + text.find("7}"));
}

TEST(JsonValue, ARootMayBeAScalar) {
  EXPECT_EQ(std::get<std::int64_t>(parse_json("12", "file")->content), 12);
  EXPECT_EQ(std::get<std::int64_t>(parse_json("-9223372036854775808", "file")->content), INT64_MIN);
  EXPECT_EQ(std::get<double>(parse_json("9223372036854775808", "file")->content), 0x1p63);
}

TEST(JsonValue, LimitsHold) {
  const JsonLimits limits{.bytes = 20, .depth = 2, .values = 4};
  EXPECT_TRUE(parse_json("[[1,2]]", "file", limits));
  EXPECT_EQ(parse_json("[[1,2,3]]", "file", limits).error().message, "file: at byte 6: more than 4 values");
  EXPECT_EQ(parse_json("[[[]]]", "file", limits).error().message, "file: at byte 2: nested deeper than 2 levels");
  EXPECT_EQ(parse_json("[1]" + std::string(18, ' '), "file", limits).error().message,
            "file: 21 bytes of JSON, the limit is 20");
}

TEST(JsonValue, WhatTheLibrarySaysIsMadePrintable) {
  const auto error = parse_json("{\"\x01\xff", "file").error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidFile);
  for (const char c : error.message) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  EXPECT_LT(parse_json("[" + std::string(100'000, 'x'), "file").error().message.size(), 300U);
}

TEST(JsonField, IntegersAreCheckedForTypeAndRange) {
  const auto field_of = [](const JsonValue& value) { return JsonField(value, "file"); };
  const auto value_of = [](const char* text) { return parse_json(text, "file").value(); };
  EXPECT_EQ(field_of(value_of("5")).integer(5, 5).value(), 5);
  EXPECT_EQ(field_of(value_of("1e3")).integer(0, 1000).value(), 1000) << "a float without a fraction";
  for (const char* const text : {"6", "4", "5.5", "1e300", "-1e300", "\"5\"", "true", "null", "[5]"}) {
    EXPECT_FALSE(field_of(value_of(text)).integer(5, 5)) << text;
  }
  EXPECT_EQ(field_of(value_of("2")).number(0, 2).value(), 2.0);
  for (const char* const text : {"2.0000001", "-0.1", "\"1\"", "null"}) {
    EXPECT_FALSE(field_of(value_of(text)).number(0, 2)) << text;
  }
}

TEST(JsonField, ErrorsNameTheWay) {
  const auto root = parse_json(R"({"a": {"b.c": [0, {"d": "x"}]}, "n": null})", "file").value();
  const JsonField field(root, "file");
  const auto inner = field.at("a")->at("b.c")->list(2)->at(1).at("d");
  EXPECT_EQ(inner->integer(0, 1).error().message, "file: a.'b.c'[1].d at byte 24: expected an integer, found a string");
  EXPECT_FALSE(field.find("n").value()) << "null is absent";
  EXPECT_THAT(field.at("n").error().message, EndsWith("the root at byte 0: has no 'n'"));
  EXPECT_THAT(field.at("a")->at("b.c")->list(1).error().message, EndsWith("a list of 2, the limit is 1"));
  EXPECT_THAT(field.list(1).error().message, EndsWith("expected a list, found an object"));
  EXPECT_THAT(field.at("a")->at("b.c")->find("x").error().message, HasSubstr("expected an object, found a list"));
}

}  // namespace
}  // namespace quern::formats
