// Generation: one HTTP request's engine requests, and the response that their events become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/engine/engine.h"
#include "quern/server/reply_channel.h"
#include "quern/wire/replies.h"

namespace quern::server {

/// What a generating request asks for.
struct GenerationPlan {
  /// Submits engine request `index`, as Engine::chat and Engine::complete do.
  using Submit = std::function<Result<void>(std::size_t index, engine::ReplySink sink, CancellationToken cancellation)>;

  std::size_t requests = 1;  // one per prompt, in their order
  std::int32_t n = 1;        // choices of each
  bool stream = false;
  Submit submit;
  std::unique_ptr<wire::ReplyWriter> writer;
};

/// Used on the connection's strand only, but for the channel. Several requests run at once, as many as the engine's
/// queue takes, up to a window. Destruction cancels what is left.
class Generation {
 public:
  /// `wake` as ReplyChannel's.
  Generation(GenerationPlan plan, std::size_t unsent_bytes, std::function<void()> wake);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;
  ~Generation();

  struct Output {
    bool open = false;                  // the response may begin
    std::string bytes = {};             // to send, after those of earlier calls
    bool ended = false;                 // nothing comes any more
    std::optional<Error> refused = {};  // ended before the response began: it is this error
  };
  /// Submits what may be submitted and turns the events that have come into output.
  [[nodiscard]] Output poll();
  /// Ends it, whatever the engine does.
  [[nodiscard]] Output fail(Error error);

  [[nodiscard]] bool stream() const { return plan_.stream; }
  [[nodiscard]] ReplyChannel& channel() { return *channel_; }

 private:
  void submit();
  void apply(ReplyChannel::Item&& item);
  void finish(const engine::GenerateStats& stats);

  GenerationPlan plan_;
  std::shared_ptr<ReplyChannel> channel_;
  CancellationSource cancellation_;
  std::size_t submitted_ = 0;
  std::size_t started_ = 0;
  std::size_t done_ = 0;
  bool open_ = false;
  std::string pending_;  // not sent yet
  wire::ReplyStats stats_;
  std::optional<Error> failure_;
};

}  // namespace quern::server
