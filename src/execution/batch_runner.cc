// Pages are reserved before a pass; tokens are counted after it.
#include "quern/execution/batch_runner.h"

#include <utility>

#include "quern/base/check.h"

namespace quern::execution {

BatchRunner::BatchRunner(std::unique_ptr<ops::Device> device, std::unique_ptr<model::Model> model,
                         tensor::DType kv_dtype, const RunnerLimits& limits)
    : device_(std::move(device)),
      model_(std::move(model)),
      limits_(limits),
      storage_(model_->config(), kv_dtype, limits.pages),
      cache_({.page_tokens = ops::kPageTokens,
              .page_bytes = storage_.page_bytes(),
              .budget_bytes = storage_.page_bytes() * static_cast<std::uint64_t>(limits.pages)}) {
  QUERN_CHECK(limits.max_rows > 0 && limits.chunk_tokens > 0 && limits.max_outputs >= limits.max_rows);
}

RowId BatchRunner::open(std::span<const std::int32_t> prompt, std::int64_t projected_tokens) {
  const RowId id{next_row_++};
  rows_.emplace(id, cache_.open({}, prompt, projected_tokens));  // one model: nothing to keep apart by name
  return id;
}

RowId BatchRunner::fork(RowId source) {
  const RowId id{next_row_++};
  rows_.emplace(id, cache_.fork(rows_.at(source)));
  return id;
}

void BatchRunner::close(RowId row) {
  cache_.close(rows_.at(row));
  rows_.erase(row);
}

std::int64_t BatchRunner::stored_tokens(RowId row) const {
  return std::ssize(rows_.at(row).tokens);
}

Result<std::span<const float>> BatchRunner::run(std::span<const RowWork> work) {
  for (const RowWork& part : work) {
    QUERN_ASSIGN(const auto copies, cache_.reserve(rows_.at(part.row), std::ssize(part.tokens)));
    for (const kv::PageCopy& copy : copies) storage_.copy_page(copy.from, copy.to);
  }
  pack(work);
  const std::size_t logits = outputs_.size() * static_cast<std::size_t>(config().vocab);
  if (logits_.size() < logits) logits_ = tensor::Buffer<float>(logits, tensor::Buffer<float>::Fill::kNone);
  model_->forward({tokens_, batch_rows_, outputs_}, storage_.layers(), logits_.span().first(logits));
  for (const RowWork& part : work) cache_.commit(rows_.at(part.row), part.tokens);
  return logits_.span().first(logits);
}

void BatchRunner::pack(std::span<const RowWork> work) {
  tokens_.clear();
  batch_rows_.clear();
  outputs_.clear();
  for (const RowWork& part : work) {
    QUERN_CHECK(!part.tokens.empty());
    const kv::Sequence& row = rows_.at(part.row);
    const auto first = static_cast<std::int32_t>(tokens_.size());
    for (const std::int32_t token : part.tokens) {
      QUERN_CHECK(token >= 0 && token < config().vocab);
      if (part.outputs == RowWork::Outputs::kAll) outputs_.push_back(static_cast<std::int32_t>(tokens_.size()));
      tokens_.push_back(token);
    }
    if (part.outputs == RowWork::Outputs::kLast) outputs_.push_back(static_cast<std::int32_t>(tokens_.size()) - 1);
    batch_rows_.push_back({first, static_cast<std::int32_t>(part.tokens.size()),
                           static_cast<std::int32_t>(row.tokens.size()), row.pages});
  }
  QUERN_CHECK(static_cast<std::int64_t>(tokens_.size()) <= limits_.max_tokens());
  QUERN_CHECK(outputs_.size() <= static_cast<std::size_t>(limits_.max_outputs));
}

Result<void> BatchRunner::check_integrity() const {
  std::vector<const kv::Sequence*> open;
  for (const auto& [id, row] : rows_) open.push_back(&row);
  return cache_.check_integrity(open);
}

}  // namespace quern::execution
