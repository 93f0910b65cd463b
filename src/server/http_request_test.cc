// The reader takes requests in pieces of any size, and refuses what breaks the rules or the limits.
#include "quern/server/http_request.h"

#include <gtest/gtest.h>

#include <string>

namespace quern::server {
namespace {

constexpr RequestReader::Limits kLimits{.header_bytes = 512, .header_lines = 5, .body_bytes = 20};

/// Feeds `bytes`, `step` more at a time, as a connection does. What is left at the end.
Result<std::string> feed(RequestReader& reader, std::string_view bytes, std::size_t step) {
  std::string input;
  while (!reader.complete()) {
    QUERN_ASSIGN(const std::size_t taken, reader.feed(input));
    input.erase(0, taken);
    if (taken > 0) continue;
    if (bytes.empty()) break;
    input += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  return input + std::string(bytes);
}

TEST(RequestReader, AnyPieces) {
  const std::string chunked =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-One:  two \r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;e=f\r\ndefg\r\n0\r\n\r\nGET";
  const std::string plain = "POST http://h/a HTTP/1.1\r\nHost: x\r\nX-One: two\r\nContent-Length: 7\r\n\r\nabcdefgGET";
  for (const std::string& text : {chunked, plain}) {
    for (std::size_t step = 1; step <= text.size(); ++step) {
      RequestReader reader(kLimits);
      const auto left = feed(reader, text, step);
      ASSERT_TRUE(left) << left.error().message << " step " << step;
      ASSERT_TRUE(reader.complete()) << step;
      EXPECT_EQ(*left, "GET");
      EXPECT_EQ(reader.request().method, "POST");
      EXPECT_EQ(reader.request().path, "/a");
      EXPECT_EQ(reader.request().header("x-one"), "two");
      EXPECT_EQ(reader.request().body, "abcdefg");
      EXPECT_TRUE(reader.request().keep_alive);
    }
  }
}

TEST(RequestReader, StopsBehindTheHead) {
  RequestReader reader(kLimits);
  const std::string text = "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\na";
  const auto taken = reader.feed(text);
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, text.size() - 1);
  EXPECT_TRUE(reader.has_head());
  EXPECT_FALSE(reader.complete());
}

TEST(RequestReader, OldVersionsCloseUnlessAsked) {
  RequestReader reader(kLimits);
  ASSERT_TRUE(feed(reader, "GET / HTTP/1.0\r\n\r\n", 100));
  EXPECT_TRUE(reader.complete());
  EXPECT_FALSE(reader.request().keep_alive);
  EXPECT_FALSE(reader.request().version_1_1);
}

TEST(RequestReader, Refusals) {
  const struct {
    std::string text;
    ErrorCode code;
  } cases[] = {
      {"GET / HTTP/1.1\r\nA: " + std::string(600, 'a') + "\r\n\r\n", ErrorCode::kHeadersTooLarge},
      {"GET / HTTP/1.1\r\nA: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\nA: 5\r\nA: 6\r\n\r\n", ErrorCode::kHeadersTooLarge},
      {"POST / HTTP/1.1\r\nContent-Length: 21\r\n\r\n", ErrorCode::kBodyTooLarge},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n" + std::string(21, 'a') + "\r\n",
       ErrorCode::kBodyTooLarge},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", ErrorCode::kInvalidRequest},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", ErrorCode::kInvalidRequest},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ErrorCode::kInvalidRequest},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ErrorCode::kInvalidRequest},
      {"GET / HTTP/2.0\r\n\r\n", ErrorCode::kInvalidRequest},
      {"GET /\r\n\r\n", ErrorCode::kInvalidRequest},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", ErrorCode::kInvalidRequest},
      {"\x16\x03\x01\x02 TLS\r\n\r\n", ErrorCode::kInvalidRequest},
  };
  for (const auto& item : cases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{1000}}) {
      RequestReader reader(kLimits);
      const auto result = feed(reader, item.text, step);
      ASSERT_FALSE(result) << item.text;
      EXPECT_EQ(result.error().code, item.code) << item.text << " " << result.error().message;
    }
  }
}

}  // namespace
}  // namespace quern::server
