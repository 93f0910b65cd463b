// Host, Origin and Sec-Fetch-Site: whether a browser's page may talk to this server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/server/http_request.h"

namespace quern::server {

struct AccessRules {
  bool loopback = true;            // the server listens on a loopback address
  std::string host;                // as it was told where to listen
  std::vector<std::string> hosts;  // further names
};

/// Whether `host` (an address without brackets, or "localhost") means this machine only.
[[nodiscard]] bool is_loopback(std::string_view host);

/// kInvalidRequest (no or several Host), kInvalidHost, kCrossOrigin, kCrossSite. A loopback server takes loopback names
/// and those of the rules, so that a name which a page points at this machine gets nowhere; another server takes any
/// name unless the rules list some. An Origin must be the Host's.
[[nodiscard]] Result<void> check_access(const HttpRequest& request, const AccessRules& rules);

}  // namespace quern::server
