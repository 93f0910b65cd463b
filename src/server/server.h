// Server: the HTTP surface over one engine, from the listening socket to the clean end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/base/clock.h"
#include "quern/base/result.h"
#include "quern/engine/engine.h"

namespace quern::server {

/// What one client may cost.
struct ServerLimits {
  std::size_t header_bytes = 32U << 10U;
  std::size_t header_lines = 100;
  std::size_t body_bytes = 64U << 20U;            // more is refused before it is parsed
  std::size_t unsent_bytes = 256U << 10U;         // events of a stream that its client hasn't taken: more ends it
  std::size_t connections = 4096;                 // one more is closed at once
  std::chrono::milliseconds header_time{10'000};  // to send the headers
  std::chrono::milliseconds body_gap{60'000};     // between bytes of a body
  std::chrono::milliseconds idle_time{75'000};    // between requests
  std::chrono::milliseconds unsent_time{30'000};  // without the client taking a byte
  std::chrono::milliseconds silence{15'000};      // until a stream gets a comment
  /// After a client has closed its sending side, until it is asked whether it still listens: a closed one answers with
  /// a reset, one that is half closed drops the question (a comment, or an interim 100 response).
  std::chrono::milliseconds half_closed{1'000};
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address, or a name that is resolved to one
  std::uint16_t port = 8080;       // 0 = a free one
  int io_threads = 2;
  /// Names of the model beside its id: what `serve` was given, --served-model-name. "*" takes any name.
  std::vector<std::string> model_names;
  /// Host names that requests may carry beside the loopback ones. On another address than a loopback one an empty list
  /// takes any.
  std::vector<std::string> allowed_hosts;
  ServerLimits limits;
};

/// Thread-safe. Until set_engine it answers /health with 200, /ready and work with 503.
class Server {
 public:
  /// `clock` must outlive it.
  Server(ServerOptions options, const Clock& clock);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// stop().
  ~Server();

  /// Binds, listens, starts the io threads. The bound port; kIo when the address can't be had. Once. Warns on the log
  /// when the address isn't a loopback one.
  [[nodiscard]] Result<std::uint16_t> start();
  /// The model is ready: from now on work is accepted. After start().
  void set_engine(std::shared_ptr<engine::Engine> engine);
  /// The clean end: not ready and new work 503 from now on, idle connections closed at once, the engine's admission
  /// stopped. Returns when the last running reply has ended, at the latest a moment after `timeout` or after `force`
  /// was cancelled: what still runs then ends with a server_closing error. /health answers until stop().
  void drain(std::chrono::milliseconds timeout, const CancellationToken& force = {});
  /// Closes every connection and joins the io threads; running replies are cancelled. Idempotent. The engine isn't
  /// closed.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace quern::server
