// Cancellation in every state, the bounded queue, closing, sinks that throw; many clients at once.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <random>
#include <stdexcept>
#include <thread>

#include "support/engine_fixture.h"

namespace quern::engine {
namespace {

using tests::Collector;
using tests::ScriptedEngine;

const std::vector<std::string> kLong(150, "x");

/// Holds the model in its next pass from now on until it is let go.
class Gate {
 public:
  explicit Gate(ScriptedEngine& scripted) : scripted_(scripted) {
    scripted_.hook->set([this](int) {
      if (!entered_.try_wait()) entered_.count_down();
      open_.wait();
    });
  }
  ~Gate() {
    open();
    scripted_.hook->set({});
  }
  /// Waits until the model is in the pass.
  void wait_entered() { entered_.wait(); }
  void open() {
    if (!open_.try_wait()) open_.count_down();
  }

 private:
  ScriptedEngine& scripted_;
  std::latch entered_{1};
  std::latch open_{1};
};

void expect_idle(const Engine& engine) {
  const EngineStatus status = engine.status();
  EXPECT_EQ(status.active, 0);
  EXPECT_EQ(status.queued, 0);
  EXPECT_EQ(status.requests_finished, status.requests_accepted);
}

TEST(EngineCancellation, BeforePreparation) {
  ScriptedEngine scripted(kLong);
  CancellationSource source;
  source.cancel({ErrorCode::kCancelled, "gone"});
  Collector reply;
  scripted.run(ScriptedEngine::request(), reply, source.token());
  EXPECT_FALSE(reply.started);
  EXPECT_EQ(reply.error->message, "gone");
  EXPECT_EQ(scripted.hook->passes, 0);
  expect_idle(*scripted.engine);
}

TEST(EngineCancellation, WhileQueuedItNeverStarts) {
  ScriptedEngine scripted({"a", "b"});
  Gate gate(scripted);
  Collector running;
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), running.sink(), {}));
  gate.wait_entered();
  CancellationSource source;
  Collector queued;
  Collector behind;
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), queued.sink(), source.token()));
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), behind.sink(), {}));
  EXPECT_EQ(scripted.engine->status().active, 1);
  EXPECT_EQ(scripted.engine->status().queued, 2);
  source.cancel({ErrorCode::kCancelled, "gone"});
  gate.open();
  queued.wait();
  EXPECT_EQ(queued.error->code, ErrorCode::kCancelled);
  running.wait();
  behind.wait();
  EXPECT_EQ(running.text[0], "ab");
  EXPECT_EQ(behind.text[0], "ab");
  EXPECT_EQ(scripted.hook->passes, 6) << "three passes for each of the two that ran";
  expect_idle(*scripted.engine);
}

TEST(EngineCancellation, BetweenTheChunksOfAPrompt) {
  ScriptedEngine scripted(kLong);
  CancellationSource source;
  scripted.hook->set([&](int pass) {
    if (pass == 1) source.cancel({ErrorCode::kCancelled, "gone"});
  });
  Collector reply;
  scripted.run(ScriptedEngine::request(std::string(100, 'p') + "|"), reply, source.token());
  EXPECT_TRUE(reply.started);
  EXPECT_TRUE(reply.text.empty());
  EXPECT_EQ(reply.error->message, "gone");
  EXPECT_EQ(scripted.hook->passes, 2) << "of seven chunks";
  expect_idle(*scripted.engine);
}

TEST(EngineCancellation, WhileDecodingWithSeveralChoices) {
  for (const std::int32_t n : {1, 3}) {
    ScriptedEngine scripted(kLong);
    CancellationSource source;
    scripted.hook->set([&](int pass) {
      if (pass == 5) source.cancel({ErrorCode::kCancelled, "gone"});
    });
    auto request = ScriptedEngine::request();
    request.options.n = n;
    Collector reply;
    scripted.run(request, reply, source.token());
    EXPECT_EQ(reply.error->message, "gone");
    EXPECT_EQ(reply.text[0], "xxxxxx") << "what was drawn before is delivered";
    EXPECT_TRUE(reply.finished.empty());
    EXPECT_EQ(scripted.hook->passes, 6);
    expect_idle(*scripted.engine);
    scripted.hook->set({});
    Collector next;
    scripted.run(ScriptedEngine::request(), next);
    EXPECT_EQ(next.text[0].size(), 150U) << "its pages are free again";
  }
}

TEST(EngineQueue, IsBoundedAndRefusesAtOnce) {
  ScriptedEngine scripted({"a"}, {.queue_limit = 2});
  Gate gate(scripted);
  std::vector<Collector> replies(3);
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), replies[0].sink(), {}));
  gate.wait_entered();
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), replies[1].sink(), {}));
  ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), replies[2].sink(), {}));
  const auto refused = scripted.engine->complete(ScriptedEngine::request(),
                                                 [](ReplyEvent&&) { FAIL() << "a refused request has no events"; }, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  gate.open();
  for (Collector& reply : replies) {
    reply.wait();
    EXPECT_EQ(reply.text[0], "a");
  }
  EXPECT_EQ(scripted.engine->status().requests_accepted, 3);
  expect_idle(*scripted.engine);
}

TEST(EngineClose, StopAdmissionLetsTheRestFinish) {
  ScriptedEngine scripted({"a"});
  Gate gate(scripted);
  std::vector<Collector> replies(2);
  for (Collector& reply : replies) {
    ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), reply.sink(), {}));
  }
  scripted.engine->stop_admission();
  scripted.engine->stop_admission();
  const auto refused = scripted.engine->complete(ScriptedEngine::request(), [](ReplyEvent&&) {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kServerClosing);
  gate.open();
  for (Collector& reply : replies) {
    reply.wait();
    EXPECT_EQ(reply.text[0], "a");
  }
}

TEST(EngineClose, EndsWhatRunsAndWhatWaitsWithItsReason) {
  ScriptedEngine scripted(kLong);
  std::vector<Collector> replies(5);
  for (Collector& reply : replies) {
    ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), reply.sink(), {}));
  }
  replies[0].wait_for_deltas(3);
  std::thread other([&] { scripted.engine->close({ErrorCode::kServerClosing, "shutting down"}); });
  scripted.engine->close({ErrorCode::kServerClosing, "shutting down"});
  for (Collector& reply : replies) {
    EXPECT_TRUE(reply.ended()) << "close returns after the last event";
    if (reply.error) {
      EXPECT_EQ(reply.error->message, "shutting down");
    }
  }
  other.join();
  expect_idle(*scripted.engine);
  scripted.engine->close({ErrorCode::kServerClosing, "again"});
}

TEST(EngineClose, DestructionEndsEverything) {
  std::vector<Collector> replies(5);
  {
    ScriptedEngine scripted(kLong);
    for (Collector& reply : replies) {
      ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(), reply.sink(), {}));
    }
  }
  for (Collector& reply : replies) EXPECT_TRUE(reply.ended());
}

TEST(EngineSink, OneThatThrowsEndsItsOwnRequest) {
  for (const int failing : {0, 1, 4}) {
    ScriptedEngine scripted(kLong);
    std::atomic<int> calls{0};
    std::promise<void> gone;
    std::shared_ptr<void> released(nullptr, [&gone](void*) { gone.set_value(); });
    ASSERT_TRUE(scripted.engine->complete(ScriptedEngine::request(),
                                          [&calls, failing, released = std::move(released)](ReplyEvent&&) {
                                            if (calls++ == failing) throw std::runtime_error("sink");
                                          },
                                          {}));
    gone.get_future().wait();  // the sink is given back
    Collector next;
    scripted.run(ScriptedEngine::request(), next);
    EXPECT_EQ(next.text[0].size(), 150U);
    EXPECT_EQ(calls, failing + 1) << "it is called no more";
    expect_idle(*scripted.engine);
  }
}

TEST(EngineStress, ManyClientsThatComeAndGoLeaveNothing) {
  ScriptedEngine scripted(std::vector<std::string>(30, "y"), {.queue_limit = 16});
  constexpr int kClients = 6;
  constexpr int kRequests = 40;
  std::atomic<int> accepted{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937 random(static_cast<std::uint32_t>(client));
      for (int i = 0; i < kRequests; ++i) {
        CancellationSource source;
        Collector reply;
        auto request = ScriptedEngine::request(std::string(random() % 60, 'p') + "|");
        request.options.n = 1 + static_cast<std::int32_t>(random() % 3);
        const int behaviour = static_cast<int>(random() % 4);
        if (behaviour == 0) request.options.stops = {"yyyy"};
        if (!scripted.engine->complete(request, reply.sink(), source.token())) continue;
        ++accepted;
        if (behaviour == 1) source.cancel();
        if (behaviour == 2) {
          reply.wait_for_deltas(static_cast<int>(random() % 10));
          source.cancel();
        }
        reply.wait();
        if (reply.error) {
          EXPECT_EQ(reply.error->code, ErrorCode::kCancelled);
          EXPECT_TRUE(behaviour == 1 || behaviour == 2);
        } else {
          EXPECT_EQ(reply.text[0], behaviour == 0 ? "" : std::string(30, 'y'));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  expect_idle(*scripted.engine);
  EXPECT_EQ(scripted.engine->status().requests_accepted, accepted);
  Collector canary;
  scripted.run(ScriptedEngine::request(), canary);
  EXPECT_EQ(canary.text[0], std::string(30, 'y'));
}

}  // namespace
}  // namespace quern::engine
