// The server through real sockets, over an engine whose replies the test writes.
#include "quern/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_engine.h"
#include "support/http_client.h"

namespace quern::server {
namespace {

using std::chrono::milliseconds;
using support::ClientResponse;
using support::FakeEngine;
using support::HttpClient;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kChat = "/v1/chat/completions";
const std::string kCompletions = "/v1/completions";
const std::string kBody = R"({"messages":[{"role":"user","content":"hi"}]})";
const std::string kStreamBody = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { options_.port = 0; }
  void TearDown() override {
    server_.reset();
    engine_.reset();
  }

  void start(bool with_engine = true) {
    server_ = std::make_unique<Server>(options_, clock_);
    auto port = server_->start();
    ASSERT_TRUE(port) << port.error().message;
    port_ = *port;
    if (with_engine) server_->set_engine(engine_);
  }
  ClientResponse get(const std::string& path, const std::string& headers = {}) const {
    HttpClient client(port_);
    client.get(path, headers);
    return client.response();
  }
  ClientResponse post(const std::string& path, const std::string& body, const std::string& headers = {}) const {
    HttpClient client(port_);
    client.post(path, body, headers);
    return client.response();
  }

  ServerOptions options_;
  SystemClock clock_;
  std::shared_ptr<FakeEngine> engine_ = std::make_shared<FakeEngine>();
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(ServerTest, LoadingThenReady) {
  start(false);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 503);
  const auto refused = post(kChat, kBody);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("model_unavailable"));
  EXPECT_TRUE(refused.has("Retry-After: "));
  server_->set_engine(engine_);
  EXPECT_EQ(get("/ready").status, 200);
}

TEST_F(ServerTest, OneBody) {
  start();
  HttpClient client(port_);
  client.post(kChat, kBody, "x-request-id: mine-7\r\n");
  engine_->request(0).answer("hello");
  const auto response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.whole);
  EXPECT_TRUE(response.has("x-request-id: mine-7\r\n"));
  EXPECT_TRUE(response.has("Content-Type: application/json\r\n"));
  EXPECT_THAT(response.body, HasSubstr(R"("message":{"role":"assistant","content":"hello"})"));
  EXPECT_THAT(response.body, HasSubstr(R"("total_tokens":5)"));
  EXPECT_THAT(response.body, HasSubstr(R"("model":"fake")"));
}

TEST_F(ServerTest, AStreamArrivesPieceByPiece) {
  start();
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  auto& request = engine_->request(0);
  request.start();
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(client.chunk(), HasSubstr(R"("role":"assistant")"));
  for (const std::string piece : {"one", "two", "three"}) {
    request.text(piece);
    const std::string chunk = client.chunk();
    EXPECT_THAT(chunk, StartsWith("data: {"));
    EXPECT_THAT(chunk, HasSubstr("\"content\":\"" + piece + "\""));
  }
  request.finish(engine::FinishReason::kLength);
  request.done();
  std::string rest;
  for (std::string chunk = client.chunk(); !chunk.empty(); chunk = client.chunk()) rest += chunk;
  EXPECT_THAT(rest, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(rest, HasSubstr("\"timings\""));
  EXPECT_TRUE(rest.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, FieldsReachTheEngine) {
  start();
  HttpClient client(port_);
  client.post(kCompletions,
              R"({"prompt":["a",[1,2]],"max_tokens":9,"seed":5,"stop":"x","n":2,"echo":true,"logprobs":3,)"
              R"("temperature":0.5,"ignore_eos":true,"min_tokens":1})");
  const auto& first = std::get<engine::CompletionRequest>(engine_->request(0).what);
  EXPECT_EQ(std::get<std::string>(first.prompt), "a");
  EXPECT_EQ(first.options.max_tokens, 9);
  EXPECT_EQ(first.options.sampling.seed, 5U);
  EXPECT_EQ(first.options.sampling.temperature, 0.5F);
  EXPECT_THAT(first.options.stops, ::testing::ElementsAre("x"));
  EXPECT_EQ(first.options.n, 2);
  EXPECT_TRUE(first.options.echo && first.options.ignore_eos);
  EXPECT_EQ(first.options.top_logprobs, 3);
  EXPECT_EQ(first.options.min_tokens, 1);
  const auto& second = std::get<engine::CompletionRequest>(engine_->request(1).what);
  EXPECT_THAT(std::get<std::vector<text::TokenId>>(second.prompt), ::testing::ElementsAre(1, 2));
  for (std::size_t i = 0; i < 2; ++i) {
    engine_->request(i).start();
    for (std::int32_t choice = 0; choice < 2; ++choice) {
      engine_->request(i).text(std::to_string(i) + std::to_string(choice), choice);
      engine_->request(i).finish(engine::FinishReason::kStop, choice);
    }
    engine_->request(i).done();
  }
  const auto response = client.response();
  for (const std::string choice : {R"({"index":0,"text":"00")", R"({"index":1,"text":"01")",
                                   R"({"index":2,"text":"10")", R"({"index":3,"text":"11")"}) {
    EXPECT_THAT(response.body, HasSubstr(choice));
  }
}

TEST_F(ServerTest, UnseededRequestsDiffer) {
  start();
  HttpClient client(port_);
  client.post(kCompletions, R"({"prompt":["a","a"]})");
  EXPECT_NE(engine_->request(0).options().sampling.seed, engine_->request(1).options().sampling.seed);
}

TEST_F(ServerTest, RefusalsOfTheEngineKeepTheirStatus) {
  start();
  {
    HttpClient client(port_);
    client.post(kChat, kStreamBody);
    engine_->request(0).fail({ErrorCode::kContextLengthExceeded, "70 tokens, at most 64"});
    const auto response = client.response();
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, HasSubstr("context_length_exceeded"));
    client.get("/health");
    EXPECT_EQ(client.response().status, 200) << "the connection goes on";
  }
  engine_->set_limit(0);
  const auto full = post(kChat, kBody);
  EXPECT_EQ(full.status, 429);
  EXPECT_TRUE(full.has("Retry-After: 1\r\n"));
  EXPECT_THAT(full.body, HasSubstr("queue_full"));
}

TEST_F(ServerTest, AnErrorAfterTheStreamOpenedIsOneFrame) {
  start();
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  engine_->request(0).start();
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("200 OK"));
  engine_->request(0).text("a");
  engine_->request(0).fail({ErrorCode::kInternal, "broken"});
  const std::string rest = client.read_until("\r\n0\r\n\r\n");
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n"));
  EXPECT_THAT(rest, HasSubstr(R"(data: {"error":{"message":"broken")"));
  EXPECT_THAT(rest, Not(HasSubstr("[DONE]")));
}

TEST_F(ServerTest, BadBodies) {
  start();
  const auto field = post(kChat, R"({"messages":[{"role":"user","content":"hi"}],"temperature":"hot"})");
  EXPECT_EQ(field.status, 400);
  EXPECT_THAT(field.body, HasSubstr(R"("param":"temperature")"));
  EXPECT_EQ(post(kChat, "{").status, 400);
  EXPECT_EQ(post(kChat, std::string(200, '[')).status, 400);
  EXPECT_EQ(post(kChat, "").status, 400);
  const auto tools = post(kChat, R"({"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}]})");
  EXPECT_EQ(tools.status, 501);
  EXPECT_THAT(tools.body, HasSubstr(R"("param":"tools")"));
}

TEST_F(ServerTest, Models) {
  options_.model_names = {"other/name"};
  start();
  const auto list = get("/v1/models");
  EXPECT_THAT(list.body, HasSubstr(R"("id":"fake")"));
  EXPECT_THAT(list.body, HasSubstr(R"("id":"other/name")"));
  EXPECT_THAT(get("/v1/models/fake").body, HasSubstr(R"("max_model_len":64)"));
  EXPECT_EQ(get("/v1/models/other/name").status, 200);
  EXPECT_EQ(get("/v1/models/other%2Fname").status, 200);
  const auto missing = get("/v1/models/none");
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.body, HasSubstr("fake, other/name"));
  const auto body = [](const std::string& model) {
    return R"({"model":")" + model + R"(","messages":[{"role":"user","content":"hi"}]})";
  };
  const auto unknown = post(kChat, body("none"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("model_not_found"));
  HttpClient client(port_);
  client.post(kChat, body("other/name"));
  engine_->request(0).answer("a");
  EXPECT_THAT(client.response().body, HasSubstr(R"("model":"other/name")"));
}

TEST_F(ServerTest, AStarTakesAnyModel) {
  options_.model_names = {"*"};
  start();
  HttpClient client(port_);
  client.post(kChat, R"({"model":"any","messages":[{"role":"user","content":"hi"}]})");
  engine_->request(0).answer("a");
  EXPECT_EQ(client.response().status, 200);
}

TEST_F(ServerTest, RoutesAndMethods) {
  start();
  EXPECT_EQ(get("/nothing").status, 404);
  const auto wrong = get(kChat);
  EXPECT_EQ(wrong.status, 405);
  EXPECT_TRUE(wrong.has("Allow: POST, OPTIONS\r\n"));
  EXPECT_EQ(post("/health", "{}").status, 405);
  EXPECT_EQ(post(kChat, kBody, "Content-Encoding: gzip\r\n").status, 415);
  HttpClient client(port_);
  client.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto head = client.response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 15\r\n"));
  client.send("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto options = client.response();
  EXPECT_EQ(options.status, 204);
  EXPECT_TRUE(options.has("Allow: GET, HEAD, OPTIONS\r\n"));
  client.send("POST " + kChat +
              " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(client.response().status, 415);
}

TEST_F(ServerTest, NoContentTypeIsJson) {
  start();
  HttpClient client(port_);
  client.send("POST " + kChat + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kBody.size()) +
              "\r\n\r\n" + kBody);
  engine_->request(0).answer("a");
  EXPECT_EQ(client.response().status, 200);
}

TEST_F(ServerTest, OtherSitesAreKeptOut) {
  start();
  EXPECT_EQ(get("/health", "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(get("/health", "Sec-Fetch-Site: cross-site\r\n").status, 403);
  HttpClient client(port_);
  client.send("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const auto response = client.response();
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(response.body, HasSubstr("invalid_host"));
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  client.post(kChat, kBody);
  client.get("/health");
  engine_->request(0).start();
  engine_->request(0).text("first");
  engine_->request(0).finish();
  engine_->request(0).done();
  EXPECT_THAT(client.response().body, HasSubstr("first"));
  engine_->request(1).answer("second");
  EXPECT_THAT(client.response().body, HasSubstr("second"));
  EXPECT_THAT(client.response().body, HasSubstr("ok"));
}

TEST_F(ServerTest, ChunkedBodyAndContinue) {
  start();
  HttpClient client(port_);
  client.send("POST " + kChat +
              " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("5\r\n" + kBody.substr(0, 5) + "\r\n");
  client.send(fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", kBody.size() - 5, kBody.substr(5)));
  engine_->request(0).answer("a");
  EXPECT_EQ(client.response().status, 200);
}

TEST_F(ServerTest, OldClientsGetNoChunks) {
  start();
  HttpClient client(port_);
  client.send("POST " + kChat + " HTTP/1.0\r\nContent-Length: " + std::to_string(kStreamBody.size()) + "\r\n\r\n" +
              kStreamBody);
  engine_->request(0).answer("a");
  EXPECT_THAT(client.read_until("\r\n\r\n"), Not(HasSubstr("chunked")));
  EXPECT_THAT(client.read_until("[DONE]\n\n"), StartsWith("data: "));
  EXPECT_TRUE(client.ended());
}

TEST_F(ServerTest, TooMuchIsRefusedAndTheConnectionEnds) {
  options_.limits.body_bytes = 1000;
  start();
  {
    HttpClient client(port_);
    client.send("POST " + kChat + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n");
    EXPECT_EQ(client.response().status, 413);
    client.send(std::string(1001, 'a'));
    EXPECT_TRUE(client.ended());
  }
  EXPECT_EQ(post(kChat, std::string(5000, ' ')).status, 413);
  EXPECT_EQ(get("/health", "A: " + std::string(40'000, 'a') + "\r\n").status, 431);
  std::string lines;
  for (int i = 0; i < 101; ++i) lines += "A: b\r\n";
  EXPECT_EQ(get("/health", lines).status, 431);
  HttpClient client(port_);
  client.send("nonsense\r\n\r\n");
  EXPECT_EQ(client.response().status, 400);
  EXPECT_TRUE(client.ended());
}

TEST_F(ServerTest, SlowSendersAreDropped) {
  options_.limits.header_time = milliseconds(30);
  options_.limits.body_gap = milliseconds(30);
  options_.limits.idle_time = milliseconds(30);
  start();
  HttpClient silent(port_);
  EXPECT_TRUE(silent.ended());
  HttpClient header(port_);
  header.send("GET /health HTT");
  EXPECT_TRUE(header.ended());
  HttpClient body(port_);
  body.send("POST " + kChat + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_TRUE(body.ended());
  HttpClient idle(port_);
  idle.get("/health");
  EXPECT_EQ(idle.response().status, 200);
  EXPECT_TRUE(idle.ended());
}

TEST_F(ServerTest, AResetCancels) {
  start();
  HttpClient client(port_);
  client.post(kChat, kBody);
  auto& request = engine_->request(0);
  request.start();
  client.reset();
  EXPECT_EQ(request.wait_cancelled().code, ErrorCode::kCancelled);
}

// A closed socket looks like a half-closed one until something is sent to it.
TEST_F(ServerTest, AClosedClientCancelsBodyAndStream) {
  options_.limits.half_closed = milliseconds(20);
  start();
  std::size_t index = 0;
  for (const std::string& body : {kBody, kStreamBody}) {
    HttpClient client(port_);
    client.post(kChat, body);
    auto& request = engine_->request(index++);
    request.start();
    client.close();
    EXPECT_EQ(request.wait_cancelled().code, ErrorCode::kCancelled);
  }
}

TEST_F(ServerTest, AHalfClosedClientStillGetsItsAnswer) {
  options_.limits.half_closed = milliseconds(20);
  start();
  HttpClient body(port_);
  body.post(kChat, kBody);
  body.half_close();
  EXPECT_EQ(body.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_FALSE(engine_->request(0).cancellation.cancelled());
  engine_->request(0).answer("still here");
  EXPECT_THAT(body.response().body, HasSubstr("still here"));
  EXPECT_TRUE(body.ended());

  HttpClient stream(port_);
  stream.post(kChat, kStreamBody);
  stream.half_close();
  engine_->request(1).start();
  EXPECT_THAT(stream.read_until("role"), HasSubstr("200 OK"));
  stream.read_until(": still here\n\n");
  engine_->request(1).text("and here");
  engine_->request(1).finish();
  engine_->request(1).done();
  EXPECT_THAT(stream.read_until("[DONE]"), HasSubstr("and here"));
}

TEST_F(ServerTest, ASilentStreamGetsComments) {
  options_.limits.silence = milliseconds(20);
  start();
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  engine_->request(0).start();
  client.read_until("\r\n\r\n");
  client.chunk();
  EXPECT_EQ(client.chunk(), ": still here\n\n");
  EXPECT_EQ(client.chunk(), ": still here\n\n");
  engine_->request(0).text("a");
  std::string chunk = client.chunk();
  while (chunk.starts_with(':')) chunk = client.chunk();
  EXPECT_THAT(chunk, HasSubstr("\"content\":\"a\""));
}

TEST_F(ServerTest, AClientThatDoesNotReadIsCancelled) {
  start();
  HttpClient client(port_, 2048);
  client.post(kChat, kStreamBody);
  auto& request = engine_->request(0);
  request.start();
  const std::string piece(10'000, 'a');
  for (int i = 0; i < 10'000 && !request.cancellation.cancelled(); ++i) request.text(piece);
  EXPECT_EQ(request.wait_cancelled().code, ErrorCode::kCancelled);
}

TEST_F(ServerTest, AClientThatStopsReadingIsCancelledInTime) {
  options_.limits.unsent_time = milliseconds(30);
  options_.limits.unsent_bytes = std::size_t{1} << 30U;
  start();
  HttpClient client(port_, 2048);
  client.post(kChat, kStreamBody);
  auto& request = engine_->request(0);
  request.start();
  request.text(std::string(8U << 20U, 'a'));
  EXPECT_EQ(request.wait_cancelled().code, ErrorCode::kCancelled);
}

TEST_F(ServerTest, DrainLetsRunningRepliesEnd) {
  start();
  HttpClient idle(port_);
  idle.get("/health");
  EXPECT_EQ(idle.response().status, 200);
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  auto& request = engine_->request(0);
  request.start();
  client.read_until("\r\n\r\n");
  auto drained = std::async(std::launch::async, [&] { server_->drain(milliseconds(60'000)); });
  EXPECT_TRUE(idle.ended()) << "idle connections are closed at once";
  EXPECT_TRUE(engine_->admission_stopped());
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 503);
  const auto refused = post(kChat, kBody);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("server_closing"));
  EXPECT_TRUE(refused.has("Connection: close\r\n"));
  request.text("the end");
  request.finish();
  request.done();
  EXPECT_THAT(client.read_until("[DONE]"), HasSubstr("the end"));
  drained.get();
  server_->stop();
  EXPECT_TRUE(client.read_until("\r\n0\r\n\r\n").ends_with("0\r\n\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST_F(ServerTest, DrainCutsAtItsTimeout) {
  start();
  HttpClient stream(port_);
  stream.post(kChat, kStreamBody);
  engine_->request(0).start();
  stream.read_until("\r\n\r\n");
  HttpClient body(port_);
  body.post(kChat, kBody);
  engine_->request(1).start();
  server_->drain(milliseconds(20));
  EXPECT_EQ(engine_->request(0).wait_cancelled().code, ErrorCode::kServerClosing);
  const std::string rest = stream.read_until("\r\n0\r\n\r\n");
  EXPECT_THAT(rest, HasSubstr("server_closing"));
  EXPECT_THAT(rest, Not(HasSubstr("[DONE]")));
  EXPECT_EQ(body.response().status, 503);
}

TEST_F(ServerTest, AForcedDrainDoesNotWait) {
  start();
  HttpClient client(port_);
  client.post(kChat, kBody);
  static_cast<void>(engine_->request(0));
  CancellationSource force;
  auto drained = std::async(std::launch::async, [&] { server_->drain(milliseconds(3'600'000), force.token()); });
  force.cancel();
  drained.get();
  EXPECT_EQ(client.response().status, 503);
}

TEST_F(ServerTest, StopEndsEverythingAtOnce) {
  start();
  HttpClient idle(port_);
  HttpClient client(port_);
  client.post(kChat, kStreamBody);
  auto& request = engine_->request(0);
  request.start();
  client.read_until("\r\n\r\n");
  server_->stop();
  EXPECT_TRUE(request.cancellation.cancelled());
  request.text("nobody hears this");
  client.read_until("never");
  EXPECT_TRUE(client.ended() && idle.ended());
  server_->stop();
}

TEST_F(ServerTest, ATakenPortIsAnError) {
  start();
  options_.port = port_;
  Server second(options_, clock_);
  const auto port = second.start();
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, ErrorCode::kIo);
}

TEST_F(ServerTest, ManyConnectAndCancelCyclesLeaveNothing) {
  start();
  for (std::size_t i = 0; i < 200; ++i) {
    HttpClient client(port_);
    client.post(kChat, i % 2 == 0 ? kBody : kStreamBody);
    auto& request = engine_->request(i);
    if (i % 3 == 0) request.start();
    client.reset();
    EXPECT_EQ(request.wait_cancelled().code, ErrorCode::kCancelled);
    request.fail({ErrorCode::kCancelled, "cancelled"});
  }
  server_->drain(milliseconds(60'000));  // returns only when nothing is left
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(ServerTest, ManyStreamsAtOnce) {
  start();
  constexpr std::size_t kClients = 16;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      const auto response = post(kChat, kStreamBody);
      EXPECT_TRUE(response.whole);
      for (int piece = 0; piece < 50; ++piece)
        EXPECT_THAT(response.body, HasSubstr("p" + std::to_string(piece) + "\""));
    });
  }
  std::vector<std::thread> writers;
  for (std::size_t i = 0; i < kClients; ++i) {
    writers.emplace_back([&, i] {
      auto& request = engine_->request(i);
      request.start();
      for (int piece = 0; piece < 50; ++piece) request.text("p" + std::to_string(piece));
      request.finish();
      request.done();
    });
  }
  for (auto& thread : writers) thread.join();
  for (auto& thread : clients) thread.join();
}

}  // namespace
}  // namespace quern::server
