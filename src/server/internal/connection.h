// Connection: one client's socket, its requests one after the other.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "quern/server/api.h"
#include "quern/server/busy_count.h"
#include "quern/server/generation.h"
#include "quern/server/http_request.h"
#include "quern/server/http_response.h"
#include "quern/server/server.h"

namespace quern::server {

/// What all connections share; outlives them.
struct ConnectionShared {
  const ServerLimits limits;
  const Clock& clock;
  const Api& api;
  BusyCount busy;
  std::atomic<bool> draining{false};
};

/// Everything but the public methods runs on the socket's strand. One coroutine reads, answers and writes; at most one
/// read and one write are under way, and the single timer wakes the coroutine when either has ended, when the engine
/// has something, or at its deadline. What the operations touch are members, so nothing refers to a coroutine's frame.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Closed = std::function<void(const std::shared_ptr<Connection>&)>;

  /// The socket's executor is a strand. `shared` must outlive it.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionShared& shared, Closed closed);
  void start();

  // Any thread.
  void drain();  // closes when it is between requests, else after the answer
  void cut();    // a running answer ends with server_closing
  void stop();   // closes at once

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  template <class T>
  using Task = boost::asio::awaitable<T>;

  Task<void> run();
  Task<bool> serve();  // one request; whether another may follow
  Task<bool> read_head(RequestReader& reader);
  Task<bool> read_body(RequestReader& reader, ResponseForm form);
  Task<bool> refuse(Error error, ResponseForm form);  // and no request may follow
  Task<bool> respond(HttpResponse response, ResponseForm form);
  Task<bool> generate(GenerationPlan plan, ResponseForm form);
  Task<bool> relay(ResponseForm form);
  Task<bool> send(std::string bytes);
  Task<void> linger();
  Task<void> wait_until(TimePoint deadline);

  void start_read();
  void start_write();
  void watch_for_reset();
  void notify() { wake_.cancel(); }
  void post(void (Connection::*action)());
  void on_cut();
  void on_stop();
  void close();
  [[nodiscard]] bool lost() const { return gone_ || stopping_; }
  // What makes a client that has closed its socket answer with a reset, and is nothing to one that still reads.
  [[nodiscard]] static std::string question(const ResponseForm& form, bool opened);
  [[nodiscard]] ResponseForm form_of(const HttpRequest& request) const;

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer wake_;
  ConnectionShared& shared_;
  const Closed closed_;

  std::array<char, 16384> incoming_{};  // what a read under way writes to
  std::string input_;                   // read, not yet taken by a request
  std::string outgoing_;                // being written
  std::size_t sent_ = 0;
  std::optional<Generation> generation_;
  bool reading_ = false;
  bool writing_ = false;
  bool first_ = true;          // no request yet
  bool idle_ = true;           // between requests
  bool end_of_input_ = false;  // the client has closed its side, or all of it
  bool watching_ = false;
  bool gone_ = false;  // reset, or a write failed
  bool cut_ = false;
  bool stopping_ = false;
};

}  // namespace quern::server
