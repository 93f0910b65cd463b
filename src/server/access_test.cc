// Which Host, Origin and Sec-Fetch-Site may talk to the server.
#include "quern/server/access.h"

#include <gtest/gtest.h>

#include <string>

namespace quern::server {
namespace {

constexpr int kAllowed = -1;

int check(const AccessRules& rules, std::vector<std::pair<std::string, std::string>> headers, bool version_1_1 = true) {
  HttpRequest request;
  request.headers = std::move(headers);
  request.version_1_1 = version_1_1;
  const auto result = check_access(request, rules);
  return result ? kAllowed : static_cast<int>(result.error().code);
}

TEST(Access, LoopbackHosts) {
  const AccessRules rules{.loopback = true, .host = "127.0.0.1", .hosts = {"box.lan"}};
  for (const std::string host : {"localhost", "LOCALHOST:8080", "127.0.0.1:80", "127.1.2.3", "[::1]:8080", "localhost.",
                                 "box.lan:1", "Box.Lan"}) {
    EXPECT_EQ(check(rules, {{"host", host}}), kAllowed) << host;
  }
  for (const std::string host :
       {"evil.example", "127.evil.example", "localhost.evil.example", "192.168.0.2", "[::2]", "", "[::1"}) {
    EXPECT_EQ(check(rules, {{"host", host}}), static_cast<int>(ErrorCode::kInvalidHost)) << host;
  }
}

TEST(Access, AnOpenServerTakesAnyNameUnlessSomeAreListed) {
  AccessRules rules{.loopback = false, .host = "0.0.0.0", .hosts = {}};
  EXPECT_EQ(check(rules, {{"host", "gateway:80"}}), kAllowed);
  rules.hosts = {"gateway"};
  EXPECT_EQ(check(rules, {{"host", "gateway:80"}}), kAllowed);
  EXPECT_EQ(check(rules, {{"host", "other"}}), static_cast<int>(ErrorCode::kInvalidHost));
}

TEST(Access, OneHost) {
  const AccessRules rules;
  EXPECT_EQ(check(rules, {}), static_cast<int>(ErrorCode::kInvalidRequest));
  EXPECT_EQ(check(rules, {}, false), kAllowed) << "HTTP/1.0 needs none";
  EXPECT_EQ(check(rules, {{"host", "localhost"}, {"host", "localhost"}}), static_cast<int>(ErrorCode::kInvalidRequest));
}

TEST(Access, OriginAndSite) {
  const AccessRules rules;
  const auto with = [&](const std::string& name, const std::string& value) {
    return check(rules, {{"host", "localhost:8080"}, {name, value}});
  };
  EXPECT_EQ(with("origin", "http://localhost:8080"), kAllowed);
  for (const std::string origin : {"http://localhost:3000", "http://localhost", "http://evil.example", "null", ""}) {
    EXPECT_EQ(with("origin", origin), static_cast<int>(ErrorCode::kCrossOrigin)) << origin;
  }
  EXPECT_EQ(with("sec-fetch-site", "same-origin"), kAllowed);
  EXPECT_EQ(with("sec-fetch-site", "none"), kAllowed);
  EXPECT_EQ(with("sec-fetch-site", "cross-site"), static_cast<int>(ErrorCode::kCrossSite));
  EXPECT_EQ(with("sec-fetch-site", "same-site"), static_cast<int>(ErrorCode::kCrossSite));
}

}  // namespace
}  // namespace quern::server
