// A model whose tokens are known beforehand, for tests of what runs models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "quern/base/check.h"
#include "quern/execution/batch_runner.h"
#include "quern/model/model.h"

namespace quern::tests {

/// Stores each token in its KV page and computes logits from the pages alone, so that a page which is missing, stale or
/// shared where it shouldn't be changes the output.
class ScriptedModel final : public model::Model {
 public:
  using History = std::span<const std::int32_t>;
  /// The logit of `token` after `history`.
  using Score = std::function<float(History history, std::int32_t token)>;

  ScriptedModel(std::int32_t vocab, std::int64_t context, Score score) : score_(std::move(score)) {
    config_.architecture = "scripted";
    config_.layers = 2;
    config_.kv_heads = 1;
    config_.head_dim = 1;
    config_.vocab = vocab;
    config_.context = context;
  }

  /// Scores that make `next(history)` the arg max by far.
  [[nodiscard]] static Score favour(std::function<std::int32_t(History)> next) {
    return [next = std::move(next)](History history, std::int32_t token) {
      return token == next(history) ? 20.0F : static_cast<float>(token % 7) * 0.1F;
    };
  }

  [[nodiscard]] const model::ModelConfig& config() const override { return config_; }
  [[nodiscard]] std::size_t weight_bytes() const override { return 0; }
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t, std::int64_t) const override { return 0; }

  void forward(const ops::Batch& batch, std::span<const ops::KvLayer> kv, std::span<float> logits,
               const model::Observer&) override {
    if (before_pass) before_pass(batch);
    std::size_t output = 0;
    for (const ops::BatchRow& row : batch.rows) {
      for (std::int32_t i = 0; i < row.tokens; ++i) {
        for (const ops::KvLayer& layer : kv) {
          const auto token = static_cast<float>(batch.tokens[static_cast<std::size_t>(row.first_token + i)]);
          *slot(layer.keys, row, row.first_position + i) = token;
          *slot(layer.values, row, row.first_position + i) = token;
        }
      }
      for (; output < batch.outputs.size() && batch.outputs[output] < row.first_token + row.tokens; ++output) {
        std::vector<std::int32_t> history;
        const std::int32_t end = row.first_position + batch.outputs[output] - row.first_token + 1;
        for (std::int32_t position = 0; position < end; ++position) {
          for (const ops::KvLayer& layer : kv) {
            QUERN_CHECK(*slot(layer.keys, row, position) == *slot(kv.back().values, row, position));
            QUERN_CHECK(*slot(layer.values, row, position) == *slot(kv.back().values, row, position));
          }
          history.push_back(static_cast<std::int32_t>(*slot(kv.back().values, row, position)));
        }
        for (std::int32_t token = 0; token < config_.vocab; ++token) {
          logits[output * static_cast<std::size_t>(config_.vocab) + static_cast<std::size_t>(token)] =
              score_(history, token);
        }
      }
    }
  }

  [[nodiscard]] float score(History history, std::int32_t token) const { return score_(history, token); }

  /// Called first in each pass: a test waits, counts or throws here.
  std::function<void(const ops::Batch&)> before_pass;

 private:
  static float* slot(std::byte* plane, const ops::BatchRow& row, std::int32_t position) {
    const auto page = static_cast<std::size_t>(row.pages[static_cast<std::size_t>(position / ops::kPageTokens)]);
    return reinterpret_cast<float*>(plane) + page * ops::kPageTokens +
           static_cast<std::size_t>(position % ops::kPageTokens);
  }

  model::ModelConfig config_;
  Score score_;
};

/// A runner over it, with f32 KV and no device.
[[nodiscard]] inline std::unique_ptr<execution::BatchRunner> scripted_runner(std::unique_ptr<ScriptedModel> model,
                                                                             const execution::RunnerLimits& limits) {
  return std::make_unique<execution::BatchRunner>(nullptr, std::move(model), tensor::DType::kF32, limits);
}

}  // namespace quern::tests
