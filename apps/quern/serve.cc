// quern serve: listen at once, load, serve, end cleanly.
#include <chrono>
#include <cstdio>
#include <future>

#include "commands.h"
#include "interrupt.h"
#include "loading.h"
#include "models.h"
#include "quern/server/server.h"

namespace quern::app {
namespace {

/// Where a client on this machine reaches the server.
std::string url(const std::string& host, std::uint16_t port) {
  const bool any = host == "0.0.0.0" || host == "::";
  const std::string name = any ? "127.0.0.1" : host;
  return name.find(':') == std::string::npos ? fmt::format("http://{}:{}", name, port)
                                             : fmt::format("http://[{}]:{}", name, port);
}

server::ServerOptions server_options(const Options& options, const std::string& argument) {
  server::ServerOptions result;
  result.host = options.host;
  result.port = options.port;
  result.model_names = options.served_model_names;
  result.model_names.push_back(argument.empty() ? "starter" : argument);
  return result;
}

void say_ready(const std::string& address, const engine::ModelInfo& info) {
  fmt::print("ready: {} serves {}\n", address, info.id);
  constexpr std::string_view kJson = "-H 'Content-Type: application/json'";
  if (info.has_chat_template) {
    fmt::print(
        "try: curl {}/v1/chat/completions {} -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}], "
        "\"stream\": true}}'\n",
        address, kJson);
  } else {
    fmt::print("try: curl {}/v1/completions {} -d '{{\"prompt\": \"Once upon a time\", \"max_tokens\": 32}}'\n",
               address, kJson);
  }
  std::fflush(stdout);
}

/// The first signal asks for the clean end, the second for the quick one.
struct Endings {
  CancellationSource stop;
  CancellationSource force;

  void on_signal() {
    if (stop.cancel({ErrorCode::kServerClosing, "the server is closing"})) return;
    force.cancel({ErrorCode::kServerClosing, "the server is closing at once"});
  }
  void wait_for_stop() const {
    std::promise<void> asked;
    const auto subscription = stop.token().subscribe([&](const Error&) { asked.set_value(); });
    asked.get_future().wait();
  }
};

Result<int> serve(const Options& options, const ModelChoice& model, server::ServerOptions settings, Endings& endings) {
  const SystemClock clock;
  server::Server server(std::move(settings), clock);
  QUERN_ASSIGN(const std::uint16_t port, server.start());
  const std::string address = url(options.host, port);
  fmt::print(stderr, "listening on {}\n", address);

  auto engine = load_engine(options, model, endings.stop.token());
  if (!engine) {
    if (endings.stop.cancelled()) return 0;
    return fail(engine.error());
  }
  server.set_engine(*engine);
  say_ready(address, (*engine)->info());

  endings.wait_for_stop();
  fmt::print(stderr, "closing: running replies have {} s, a second signal ends at once\n", options.shutdown_timeout_s);
  server.drain(std::chrono::milliseconds(static_cast<std::int64_t>(options.shutdown_timeout_s * 1000.0)),
               endings.force.token());
  server.stop();
  (*engine)->close({ErrorCode::kServerClosing, "the server is closing"});
  return 0;
}

}  // namespace

Result<int> run_serve(const Options& options, const std::vector<std::string>& arguments) {
  const std::string argument = arguments.empty() ? std::string() : arguments.front();
  QUERN_ASSIGN(const ModelChoice model, find_model(store::Home(options.home), argument));
  Endings endings;
  return run_watched([&] { return serve(options, model, server_options(options, argument), endings); },
                     [&](int) { endings.on_signal(); });
}

}  // namespace quern::app
