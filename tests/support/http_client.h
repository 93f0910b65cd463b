// HttpClient: a plain blocking socket that shows each byte, for tests of the server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "quern/base/check.h"

namespace quern::support {

struct ClientResponse {
  int status = 0;
  std::string head;    // status line and headers
  std::string body;    // chunks joined
  bool whole = false;  // its end was seen, as the head announced it

  [[nodiscard]] bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

/// Gives up a read after 20 s, so that a broken server fails a test instead of hanging it.
class HttpClient {
 public:
  /// `receive_buffer` > 0 makes the client's window small.
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    QUERN_CHECK(socket_ >= 0);
    const timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    QUERN_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() { close(); }

  /// False when the server has closed.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void get(const std::string& path, const std::string& headers = {}) const {
    send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  void post(const std::string& path, const std::string& body, const std::string& headers = {}) const {
    send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  }
  void half_close() const { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  /// Closes with a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }

  /// Everything up to and with `end`; less when the server closes first.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = buffer_.find(end)) == std::string::npos) {
      if (!fill()) return std::exchange(buffer_, {});
    }
    return take(at + end.size());
  }
  /// The next response.
  ClientResponse response(bool head_only = false) {
    ClientResponse result;
    result.head = read_until("\r\n\r\n");
    if (!result.head.ends_with("\r\n\r\n")) return result;
    result.status = std::atoi(result.head.c_str() + std::string_view("HTTP/1.1 ").size());
    if (result.has("Transfer-Encoding: chunked")) {
      read_chunks(result);
    } else if (const auto at = result.head.find("Content-Length: "); at != std::string::npos && !head_only) {
      const auto length = static_cast<std::size_t>(std::atoll(result.head.c_str() + at + 16));
      result.body = read_bytes(length);
      result.whole = result.body.size() == length;
    } else {
      result.whole = true;
    }
    return result;
  }
  /// The data of the next chunk of a stream; empty at its end.
  std::string chunk() {
    const std::string size = read_until("\r\n");
    const auto length = static_cast<std::size_t>(std::strtoull(size.c_str(), nullptr, 16));
    std::string data = read_bytes(length);
    read_until("\r\n");
    return data;
  }
  /// True when the server ends the connection and nothing more comes.
  bool ended() { return buffer_.empty() && !fill(); }

 private:
  bool fill() {
    char bytes[4096];
    const auto got = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  std::string read_bytes(std::size_t count) {
    while (buffer_.size() < count && fill()) {
    }
    return take(std::min(count, buffer_.size()));
  }
  void read_chunks(ClientResponse& result) {
    for (;;) {
      const std::string size = read_until("\r\n");
      if (!size.ends_with("\r\n")) return;
      const auto length = static_cast<std::size_t>(std::strtoull(size.c_str(), nullptr, 16));
      result.body += read_bytes(length);
      if (read_until("\r\n") != "\r\n") return;
      if (length == 0) {
        result.whole = true;
        return;
      }
    }
  }
  std::string take(std::size_t count) {
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }

  int socket_;
  std::string buffer_;
};

}  // namespace quern::support
