// CompletionEngine: the preparation pool, the engine thread and delivery around one resident model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "quern/base/bounded_queue.h"
#include "quern/engine/delivery.h"
#include "quern/engine/parts.h"
#include "quern/engine/reply.h"
#include "quern/os/thread.h"

namespace quern::engine {

/// A simple queue: one request runs at a time (its choices together), in the order in which preparation ends. At most
/// queue_limit requests wait, in preparation or after it, which bounds both queues. A cancellation takes effect at the
/// next unit: a chunk of a prompt or a decode step; for one that waits too.
class CompletionEngine final : public Engine {
 public:
  explicit CompletionEngine(EngineParts parts);
  ~CompletionEngine() override;

  [[nodiscard]] const ModelInfo& info() const override { return parts_.info; }
  [[nodiscard]] const text::Tokenizer& tokenizer() const override { return *parts_.tokenizer; }
  [[nodiscard]] EngineStatus status() const override;
  [[nodiscard]] Result<void> chat(ChatRequest request, ReplySink sink, CancellationToken cancellation) override;
  [[nodiscard]] Result<void> complete(CompletionRequest request, ReplySink sink,
                                      CancellationToken cancellation) override;
  void stop_admission() override;
  void close(Error reason) override;

 private:
  using ReplyPtr = std::shared_ptr<Reply>;

  Result<void> submit(Prompt prompt, GenerateOptions options, ReplySink sink, CancellationToken cancellation);
  /// A reply leaves the queue: it runs, or it failed before.
  void leave_queue();

  // Preparation threads.
  void run_preparation();
  void prepare_reply(const ReplyPtr& reply);

  // Engine thread.
  void run_engine();
  void take_arrivals();
  void drop_cancelled();
  void run_reply(const ReplyPtr& reply);
  Result<GenerationEnded> generate(const ReplyPtr& reply);

  EngineParts parts_;
  const std::int32_t vocab_;  // tokens that model and tokenizer both have
  CancellationSource closing_;
  std::once_flag closed_;

  mutable std::mutex mutex_;
  bool admits_ = true;
  std::int64_t waiting_ = 0;
  std::int64_t active_ = 0;
  std::int64_t accepted_ = 0;

  std::deque<ReplyPtr> queue_;  // engine thread
  Delivery delivery_;
  BoundedQueue<ReplyPtr> to_prepare_;
  BoundedQueue<ReplyPtr> inbox_;
  os::Thread engine_;
  std::vector<os::Thread> preparation_;
};

}  // namespace quern::engine
