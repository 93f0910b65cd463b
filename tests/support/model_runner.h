// Runs one sequence through a model, with KV pages of its own: what model tests and the accuracy tool share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "quern/model/model.h"
#include "quern/ops/device.h"
#include "quern/tensor/buffer.h"

namespace quern::test {

/// One sequence of up to `capacity` tokens. Pages are handed out last first, so that none lies where its position does.
class ModelRunner {
 public:
  ModelRunner(model::Model& model, const ops::Device& device, std::int64_t capacity)
      : model_(model), pages_(static_cast<std::size_t>((capacity + ops::kPageTokens - 1) / ops::kPageTokens)) {
    std::iota(pages_.rbegin(), pages_.rend(), 0);
    const model::ModelConfig& config = model.config();
    const std::size_t layer_bytes = pages_.size() * ops::kPageTokens * static_cast<std::size_t>(config.kv_heads) *
                                    static_cast<std::size_t>(config.head_dim) * tensor::dtype_bytes(device.kv_dtype());
    for (std::int32_t i = 0; i < config.layers; ++i) {
      keys_.emplace_back(layer_bytes);
      values_.emplace_back(layer_bytes);
      kv_.push_back({.keys = keys_.back().data(),
                     .values = values_.back().data(),
                     .dtype = device.kv_dtype(),
                     .pages = static_cast<std::int32_t>(pages_.size()),
                     .kv_heads = config.kv_heads,
                     .head_dim = config.head_dim});
    }
  }

  /// Appends `tokens` to the sequence in one pass. Logits [outputs, V] of the last `outputs` of them.
  std::vector<float> run(std::span<const std::int32_t> tokens, std::size_t outputs,
                         const model::Observer& observer = {}) {
    const ops::BatchRow row{.first_token = 0,
                            .tokens = static_cast<std::int32_t>(tokens.size()),
                            .first_position = position_,
                            .pages = pages_};
    std::vector<std::int32_t> wanted(outputs);
    std::iota(wanted.begin(), wanted.end(), static_cast<std::int32_t>(tokens.size() - outputs));
    std::vector<float> logits(outputs * static_cast<std::size_t>(model_.config().vocab));
    model_.forward({.tokens = tokens, .rows = {&row, 1}, .outputs = wanted}, kv_, logits, observer);
    position_ += row.tokens;
    return logits;
  }

 private:
  model::Model& model_;
  std::vector<std::int32_t> pages_;
  std::vector<tensor::Buffer<std::byte>> keys_;
  std::vector<tensor::Buffer<std::byte>> values_;
  std::vector<ops::KvLayer> kv_;
  std::int32_t position_ = 0;
};

}  // namespace quern::test
