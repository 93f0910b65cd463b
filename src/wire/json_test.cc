// The JSON builder: order, depth, repeated keys, many keys.
#include "quern/wire/internal/json.h"

#include <gtest/gtest.h>

#include <string>

namespace quern::wire {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, KeepsOrderAndNumbers) {
  const std::string text = R"({"b":[1,-2,0.5,18446744073709551615,1e+30],"a":{"z":null,"y":[true,false,{},[]]},"":""})";
  const auto json = parse_json(text);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(dump(*json), text);
}

TEST(Json, DepthLimit) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)));
  const auto deep = parse_json(nested(kMaxJsonDepth + 1));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::kInvalidRequest);
  EXPECT_NE(deep.error().message.find("128"), std::string::npos);
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
}

TEST(Json, TheByteOfAnError) {
  const auto broken = parse_json(R"({"a": tru})");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "the body is not valid JSON: error at byte 10");
  EXPECT_FALSE(parse_json("{} {}"));
  EXPECT_FALSE(parse_json("\"\xff\""));
}

TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += fmt::format("\"k{}\":{},", i, i);
  const auto unique = parse_json(text + R"("end":1})");
  ASSERT_TRUE(unique);
  EXPECT_EQ(unique->size(), 200'001U);
  EXPECT_EQ(parse_json(text + R"("k77":1})").error().param, "k77");
}

TEST(Json, DumpNeverThrows) {
  EXPECT_EQ(dump(Json("a\xffz")), "\"a\xEF\xBF\xBDz\"");
}

}  // namespace
}  // namespace quern::wire
