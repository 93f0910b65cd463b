// HttpRequest, and the reader that makes one from untrusted bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/base/result.h"

namespace quern::server {

struct HttpRequest {
  std::string method;                                        // "GET"
  std::string path;                                          // as sent, without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool keep_alive = false;
  bool version_1_1 = true;  // else 1.0

  /// The first of that name, given in lower case; empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
};

/// Reads one request. HTTP/1.0 and 1.1, bodies with a length or chunked. Not thread-safe.
class RequestReader {
 public:
  struct Limits {
    std::size_t header_bytes = 0;
    std::size_t header_lines = 0;
    std::size_t body_bytes = 0;
  };
  explicit RequestReader(Limits limits);
  ~RequestReader();

  /// Takes bytes from the front of `bytes`; how many it took. What it left comes again, with more behind. It stops once
  /// behind the head and then at the end of the request. kInvalidRequest, kHeadersTooLarge, kBodyTooLarge (as soon as
  /// the length is known): the connection is then of no use.
  [[nodiscard]] Result<std::size_t> feed(std::string_view bytes);
  [[nodiscard]] bool has_head() const { return has_head_; }
  [[nodiscard]] bool complete() const { return complete_; }
  /// Valid once has_head; the body once complete.
  [[nodiscard]] HttpRequest& request() { return request_; }

 private:
  struct Parser;
  [[nodiscard]] Result<void> take_head();

  Limits limits_;
  std::unique_ptr<Parser> parser_;
  HttpRequest request_;
  bool has_head_ = false;
  bool complete_ = false;
};

}  // namespace quern::server
