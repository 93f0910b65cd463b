// Model: an architecture's graph over a device's operations, with its weights packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/model/config.h"
#include "quern/ops/device.h"

namespace quern::model {

/// Told the share done, 0 to 1, while weights are packed; from the loading thread.
using LoadProgress = std::function<void(double)>;

/// Where the oracle looks: called with "embedding", "layer.0.attention_norm", "layer.0.q", "layer.0.attention",
/// "layer.0.output" ... "final_norm", "logits", and the values [T, n] right after they were computed. Tests only.
using Observer = std::function<void(std::string_view name, ops::Mat values)>;

/// A loaded model. forward() is for one thread at a time.
class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  /// Resident bytes of packed weights.
  [[nodiscard]] virtual std::size_t weight_bytes() const = 0;
  /// Bytes of scratch that forward() needs for `tokens` packed tokens of which `outputs` want logits.
  [[nodiscard]] virtual std::size_t scratch_bytes(std::int64_t tokens, std::int64_t outputs) const = 0;
  /// One pass over a packed batch: reads and extends the rows' KV (kv: one KvLayer a layer) and writes the logits of
  /// batch.outputs to `logits` [outputs, V].
  virtual void forward(const ops::Batch& batch, std::span<const ops::KvLayer> kv, std::span<float> logits,
                       const Observer& observer = {}) = 0;
};

}  // namespace quern::model
