// ReplyChannel: a reply's events on their way from the engine's threads to one connection.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "quern/engine/engine.h"

namespace quern::server {

/// Bounded by the client: while it is being written to, at most `unsent_bytes` wait here; then the channel overflows
/// and drops what comes. Thread-safe; pushing never waits for the connection.
class ReplyChannel {
 public:
  struct Item {
    std::size_t request = 0;  // of the HTTP request's engine requests
    engine::ReplyEvent event;
  };

  /// `wake` is called on the pushing thread when the channel stops being empty, or overflows; it must only post.
  ReplyChannel(std::size_t unsent_bytes, std::function<void()> wake);

  void push(std::size_t request, engine::ReplyEvent&& event);
  [[nodiscard]] std::deque<Item> take();
  /// The client is being written to: what comes now waits for it.
  void set_writing(bool writing);
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  /// After it has returned, `wake` isn't running and never will; events are dropped.
  void close();

 private:
  const std::size_t unsent_bytes_;
  std::mutex mutex_;
  std::function<void()> wake_;
  std::deque<Item> items_;
  std::size_t waiting_bytes_ = 0;
  bool writing_ = false;
  std::atomic<bool> overflowed_{false};
};

}  // namespace quern::server
