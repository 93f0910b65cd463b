// Responses to bytes.
#include "quern/server/http_response.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "quern/wire/replies.h"

namespace quern::server {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    default:
      return "";
  }
}

std::string head(int status, const ResponseForm& form) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(form.date);
  return fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nServer: quern\r\nx-request-id: {}\r\n",
                     status, reason_phrase(status), fmt::gmtime(seconds), form.request_id);
}

std::string_view connection_line(const ResponseForm& form) {
  if (!form.keep_alive) return "Connection: close\r\n";
  return form.version_1_1 ? "" : "Connection: keep-alive\r\n";
}

}  // namespace

HttpResponse error_response(const Error& error) {
  HttpResponse response{.status = http_status(error.code), .body = wire::error_body(error)};
  if (response.status == 429) response.headers.emplace_back("Retry-After", "1");
  if (error.code == ErrorCode::kModelUnavailable) response.headers.emplace_back("Retry-After", "5");
  return response;
}

std::string response_bytes(const HttpResponse& response, const ResponseForm& form) {
  std::string bytes = head(response.status, form);
  for (const auto& [name, value] : response.headers) bytes += fmt::format("{}: {}\r\n", name, value);
  if (response.status != 204) {
    bytes += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", response.content_type, response.body.size());
  }
  bytes += connection_line(form);
  bytes += "\r\n";
  if (!form.head_only) bytes += response.body;
  return bytes;
}

std::string stream_head(const ResponseForm& form) {
  std::string bytes = head(200, form);
  bytes += "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (form.version_1_1) bytes += "Transfer-Encoding: chunked\r\n";
  bytes += connection_line(form);
  bytes += "\r\n";
  return bytes;
}

std::string stream_piece(std::string_view bytes, const ResponseForm& form) {
  if (bytes.empty() || !form.version_1_1) return std::string(bytes);
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string_view stream_end(const ResponseForm& form) {
  return form.version_1_1 ? "0\r\n\r\n" : "";
}

}  // namespace quern::server
