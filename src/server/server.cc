// Listening, the io threads, the set of connections, the end.
#include "quern/server/server.h"

#include <netinet/tcp.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "quern/base/check.h"
#include "quern/base/log.h"
#include "quern/os/thread.h"
#include "quern/server/access.h"
#include "quern/server/api.h"
#include "quern/server/internal/connection.h"

namespace quern::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// What a cut answer has for its last bytes.
constexpr std::chrono::milliseconds kCutTime{2000};
constexpr std::chrono::milliseconds kAcceptPause{100};

/// The address to listen on.
Result<tcp::endpoint> resolve(asio::io_context& io, const std::string& host, std::uint16_t port) {
  error_code problem;
  const auto address = asio::ip::make_address(host, problem);
  if (!problem) return tcp::endpoint(address, port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, problem);
  if (problem || found.empty()) return fail(ErrorCode::kIo, "{}: {}", host, problem.message());
  return found.begin()->endpoint();
}

/// Small pieces leave at once; a client that vanished is noticed.
void tune(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using Seconds = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  socket.set_option(Seconds(30), ignored);
  socket.set_option(Interval(15), ignored);
}

}  // namespace

class Server::Core {
 public:
  Core(ServerOptions options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        work_(asio::make_work_guard(io_)),
        acceptor_(asio::make_strand(io_)),
        pause_(acceptor_.get_executor()) {}

  Result<std::uint16_t> start();
  void set_engine(std::shared_ptr<engine::Engine> engine);
  void drain(std::chrono::milliseconds timeout, const CancellationToken& force);
  void stop();

 private:
  Result<void> listen(const tcp::endpoint& endpoint);
  void accept();
  void add(tcp::socket socket);
  void for_each(void (Connection::*action)());

  const ServerOptions options_;
  const Clock& clock_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  tcp::acceptor acceptor_;  // on its own strand, with pause_
  asio::steady_timer pause_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<ConnectionShared> shared_;
  std::vector<os::Thread> threads_;
  std::mutex mutex_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  bool stopped_ = false;
};

Result<void> Server::Core::listen(const tcp::endpoint& endpoint) {
  error_code problem;
  acceptor_.open(endpoint.protocol(), problem);
  if (!problem) acceptor_.set_option(tcp::acceptor::reuse_address(true), problem);
  if (!problem) acceptor_.bind(endpoint, problem);
  if (!problem) acceptor_.listen(asio::socket_base::max_listen_connections, problem);
  if (problem) {
    return fail(ErrorCode::kIo, "can't listen on {} port {}: {}", options_.host, options_.port, problem.message());
  }
  return {};
}

Result<std::uint16_t> Server::Core::start() {
  QUERN_ASSIGN(const tcp::endpoint endpoint, resolve(io_, options_.host, options_.port));
  QUERN_TRY(listen(endpoint));
  const bool loopback = endpoint.address().is_loopback();
  if (!loopback) {
    log_warning("listening on {}: whoever reaches this machine can use the server, there is no API key", options_.host);
  }
  api_ =
      std::make_unique<Api>(AccessRules{loopback, options_.host, options_.allowed_hosts}, options_.model_names, clock_);
  shared_ = std::make_unique<ConnectionShared>(options_.limits, clock_, *api_);
  accept();
  for (int i = 0; i < options_.io_threads; ++i) threads_.emplace_back("quern-io", [this] { io_.run(); });
  return acceptor_.local_endpoint().port();
}

void Server::Core::accept() {
  acceptor_.async_accept(asio::make_strand(io_), [this](error_code problem, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!problem) {
      add(std::move(socket));
      return accept();
    }
    log_warning("can't accept a connection: {}", problem.message());  // no descriptors left, mostly
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code aborted) {
      if (!aborted && acceptor_.is_open()) accept();
    });
  });
}

void Server::Core::add(tcp::socket socket) {
  tune(socket);
  const std::scoped_lock lock(mutex_);
  if (stopped_ || connections_.size() >= options_.limits.connections) return;  // the socket closes
  const auto connection =
      std::make_shared<Connection>(std::move(socket), *shared_, [this](const std::shared_ptr<Connection>& closed) {
        const std::scoped_lock inner(mutex_);
        connections_.erase(closed);
      });
  connections_.insert(connection);
  connection->start();
}

void Server::Core::for_each(void (Connection::*action)()) {
  const std::scoped_lock lock(mutex_);
  for (const auto& connection : connections_) ((*connection).*action)();  // only posts
}

void Server::Core::set_engine(std::shared_ptr<engine::Engine> engine) {
  QUERN_CHECK(api_ != nullptr);
  api_->set_engine(std::move(engine));
}

void Server::Core::drain(std::chrono::milliseconds timeout, const CancellationToken& force) {
  if (!api_) return;
  api_->begin_drain();
  shared_->draining = true;
  if (const auto engine = api_->engine()) engine->stop_admission();
  for_each(&Connection::drain);
  const auto forced = force.subscribe([this](const Error&) { shared_->busy.interrupt(); });
  if (shared_->busy.wait_until_idle(timeout)) return;
  for_each(&Connection::cut);
  static_cast<void>(shared_->busy.wait_until_idle(kCutTime));
}

void Server::Core::stop() {
  if (threads_.empty()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
  for_each(&Connection::stop);
  work_.reset();
  threads_.clear();  // joins: every operation was ended, so the threads run out of work
  api_->set_engine(nullptr);
}

Server::Server(ServerOptions options, const Clock& clock) : core_(std::make_unique<Core>(std::move(options), clock)) {}

Server::~Server() {
  stop();
}

Result<std::uint16_t> Server::start() {
  return core_->start();
}

void Server::set_engine(std::shared_ptr<engine::Engine> engine) {
  core_->set_engine(std::move(engine));
}

void Server::drain(std::chrono::milliseconds timeout, const CancellationToken& force) {
  core_->drain(timeout, force);
}

void Server::stop() {
  core_->stop();
}

}  // namespace quern::server
