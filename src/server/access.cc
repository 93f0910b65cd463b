// Host, Origin and Sec-Fetch-Site.
#include "quern/server/access.h"

#include <algorithm>

namespace quern::server {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// "[::1]:80" → "::1", "name.:80" → "name".
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  }
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool host_allowed(std::string_view name, const AccessRules& rules) {
  const auto same = [&](std::string_view other) { return same_letters(name, other); };
  if (is_loopback(name) || same(rules.host) || std::ranges::any_of(rules.hosts, same)) return true;
  return !rules.loopback && rules.hosts.empty();
}

bool same_origin(std::string_view origin, std::string_view host) {
  const auto scheme = origin.find("://");
  return scheme != std::string_view::npos && same_letters(origin.substr(scheme + 3), host);
}

}  // namespace

bool is_loopback(std::string_view host) {
  if (same_letters(host, "localhost") || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<void> check_access(const HttpRequest& request, const AccessRules& rules) {
  const std::size_t hosts = request.count("host");
  if (hosts > 1 || (hosts == 0 && request.version_1_1)) {
    return fail(ErrorCode::kInvalidRequest, "{} Host headers, expected one", hosts);
  }
  const std::string_view host = request.header("host");
  if (hosts == 1 && !host_allowed(host_name(host), rules)) {
    return fail(ErrorCode::kInvalidHost, "the Host isn't one that this server answers to");
  }
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return fail(ErrorCode::kCrossSite, "a request from another site's page");
  }
  const std::string_view origin = request.header("origin");
  if (request.count("origin") > 0 && !same_origin(origin, host)) {
    return fail(ErrorCode::kCrossOrigin, "the Origin isn't this server's");
  }
  return {};
}

}  // namespace quern::server
