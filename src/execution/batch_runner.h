// BatchRunner: a model with rows whose keys and values it keeps, run in packed batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "quern/base/ids.h"
#include "quern/base/result.h"
#include "quern/execution/kv_storage.h"
#include "quern/kv/page_cache.h"
#include "quern/model/model.h"
#include "quern/ops/device.h"
#include "quern/tensor/buffer.h"

namespace quern::execution {

/// What one pass may hold; scratch and logits are sized by it.
struct RunnerLimits {
  std::int32_t pages = 0;           // of KV
  std::int32_t max_rows = 32;       // in a pass
  std::int32_t chunk_tokens = 256;  // of a prompt in one pass: the longest that a cancellation waits for
  std::int32_t max_outputs = 64;    // tokens of a pass whose logits are wanted, >= max_rows

  /// Tokens of a pass at most.
  [[nodiscard]] std::int64_t max_tokens() const { return static_cast<std::int64_t>(chunk_tokens) + max_rows; }
};

/// One row's part of a pass: the tokens that follow those it holds.
struct RowWork {
  enum class Outputs : std::uint8_t { kNone, kLast, kAll };
  RowId row;
  std::span<const std::int32_t> tokens;  // at least one, each in [0, V)
  Outputs outputs = Outputs::kLast;
};

/// Owns the device, the weights on it and the KV bytes. Rows grow by run() and are freed by close(). One thread at a
/// time.
class BatchRunner {
 public:
  /// `device` made `model` (null in tests whose model needs none); `kv_dtype` is what it wants.
  BatchRunner(std::unique_ptr<ops::Device> device, std::unique_ptr<model::Model> model, tensor::DType kv_dtype,
              const RunnerLimits& limits);

  [[nodiscard]] const model::ModelConfig& config() const { return model_->config(); }
  [[nodiscard]] const RunnerLimits& limits() const { return limits_; }

  /// A new row. It begins with the longest run of full pages of `prompt` that the prefix cache has, but never with its
  /// last token; with an empty `prompt` it begins empty. `projected_tokens`: what it may come to store.
  [[nodiscard]] RowId open(std::span<const std::int32_t> prompt, std::int64_t projected_tokens);
  /// A row with the same tokens. It shares their pages; whoever writes to a shared one first takes a copy.
  [[nodiscard]] RowId fork(RowId source);
  /// The row's pages are free, or prefix cache.
  void close(RowId row);
  [[nodiscard]] std::int64_t stored_tokens(RowId row) const;
  /// Pages that rows could still take, and those that a row of so many tokens takes.
  [[nodiscard]] std::int64_t available_pages() const { return cache_.available_pages(); }
  [[nodiscard]] std::int64_t pages_for(std::int64_t tokens) const { return cache_.pages_for(tokens); }
  [[nodiscard]] std::size_t open_rows() const { return rows_.size(); }
  [[nodiscard]] kv::KvReport kv_report() const { return cache_.report(); }

  /// One forward pass. Gives the logits [outputs, V] in the order of the work, valid until the next run.
  /// kMemoryAdmission when the pages don't suffice; every row stores what it stored before then.
  [[nodiscard]] Result<std::span<const float>> run(std::span<const RowWork> work);

  /// kInternal names what is broken among pages and rows. For tests: O(pages and tokens).
  [[nodiscard]] Result<void> check_integrity() const;

 private:
  void pack(std::span<const RowWork> work);

  std::unique_ptr<ops::Device> device_;
  std::unique_ptr<model::Model> model_;  // goes before the device that it computes on
  RunnerLimits limits_;
  KvStorage storage_;
  kv::PageCache cache_;
  std::unordered_map<RowId, kv::Sequence> rows_;
  std::uint64_t next_row_ = 1;
  std::vector<std::int32_t> tokens_;
  std::vector<ops::BatchRow> batch_rows_;
  std::vector<std::int32_t> outputs_;
  tensor::Buffer<float> logits_;  // [most outputs so far, V]
};

}  // namespace quern::execution
