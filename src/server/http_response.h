// HttpResponse and its bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/base/clock.h"
#include "quern/base/error.h"

namespace quern::server {

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// What the request decides about its response's form.
struct ResponseForm {
  std::string request_id;
  Clock::WallTime date;
  bool keep_alive = false;
  bool head_only = false;   // HEAD: the length is said, the body isn't sent
  bool version_1_1 = true;  // else no chunks: the stream ends with the connection
};

/// OpenAI's error body with the code's status; Retry-After where the client had better wait.
[[nodiscard]] HttpResponse error_response(const Error& error);

[[nodiscard]] std::string response_bytes(const HttpResponse& response, const ResponseForm& form);
/// The head of a stream of server-sent events, its pieces and its end. An empty piece gives nothing.
[[nodiscard]] std::string stream_head(const ResponseForm& form);
[[nodiscard]] std::string stream_piece(std::string_view bytes, const ResponseForm& form);
[[nodiscard]] std::string_view stream_end(const ResponseForm& form);

}  // namespace quern::server
