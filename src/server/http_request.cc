// The request reader over Beast's parser: the only unit beside beast_impl.cc that sees Beast.
#include "quern/server/http_request.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace quern::server {
namespace {

namespace http = boost::beast::http;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// The path of "/a?b" and of "http://host/a?b".
std::string path_of(std::string_view target) {
  if (!target.starts_with('/')) {
    if (const auto scheme = target.find("://"); scheme != std::string_view::npos) {
      const auto slash = target.find('/', scheme + 3);
      target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    }
  }
  return std::string(target.substr(0, target.find_first_of("?#")));
}

Error error_of(const boost::beast::error_code& problem, const RequestReader::Limits& limits) {
  if (problem == http::error::header_limit) {
    return {ErrorCode::kHeadersTooLarge, fmt::format("headers of more than {} bytes", limits.header_bytes)};
  }
  if (problem == http::error::body_limit) {
    return {ErrorCode::kBodyTooLarge, fmt::format("a body of more than {} bytes", limits.body_bytes)};
  }
  return {ErrorCode::kInvalidRequest, fmt::format("not an HTTP request: {}", problem.message())};
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& header) { return std::string_view(header.first); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(headers, [&](const auto& header) { return header.first == name; }));
}

struct RequestReader::Parser {
  http::request_parser<http::string_body> http;
};

RequestReader::RequestReader(Limits limits) : limits_(limits), parser_(std::make_unique<Parser>()) {
  parser_->http.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser_->http.body_limit(limits.body_bytes);
}

RequestReader::~RequestReader() = default;

Result<std::size_t> RequestReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (!complete_ && taken < bytes.size()) {
    const bool had_head = has_head_;
    boost::beast::error_code problem;
    const std::string_view rest = bytes.substr(taken);
    const std::size_t used = parser_->http.put(boost::asio::const_buffer(rest.data(), rest.size()), problem);
    taken += used;
    if (problem && problem != http::error::need_more) return fail(error_of(problem, limits_));
    if (!had_head && parser_->http.is_header_done()) QUERN_TRY(take_head());
    if (parser_->http.is_done()) {
      complete_ = true;
      request_.body = std::move(parser_->http.get().body());
    }
    if (has_head_ != had_head || used == 0) break;
  }
  return taken;
}

Result<void> RequestReader::take_head() {
  const auto& message = parser_->http.get();
  has_head_ = true;
  request_.method = std::string_view(message.method_string());
  request_.path = path_of(message.target());
  request_.keep_alive = message.keep_alive();
  request_.version_1_1 = message.version() >= 11;
  for (const auto& field : message) {
    request_.headers.emplace_back(lower(field.name_string()), std::string_view(field.value()));
  }
  if (request_.headers.size() > limits_.header_lines) {
    return fail(ErrorCode::kHeadersTooLarge, "{} header lines, at most {}", request_.headers.size(),
                limits_.header_lines);
  }
  parser_->http.eager(true);
  return {};
}

}  // namespace quern::server
