// WeightLoader: collects what a graph needs, then packs it on several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/model/model.h"
#include "quern/model/tensor_source.h"
#include "quern/ops/device.h"

namespace quern::model {

/// A linear layer [N, K]: modules stacked along N, packed as one weight where their encodings agree and as several
/// where a file mixes them (a K-quant file keeps V wider than Q and K).
class StackedLinear {
 public:
  /// y[T, N] = (accumulate ? y : 0) + scale * (x[T, K] * w^T + bias).
  void apply(ops::Device& device, ops::Mat x, ops::Mat y, float scale = 1.0F, bool accumulate = false) const;
  [[nodiscard]] std::size_t bytes() const;
  /// The only piece. QUERN_CHECK that there is one.
  [[nodiscard]] const ops::Weight& weight() const;

 private:
  friend class WeightLoader;
  std::vector<std::unique_ptr<ops::Weight>> pieces_;
  std::vector<float> bias_;  // [N] or empty
};

/// One module's rows of a StackedLinear.
struct ModuleRows {
  std::string module;
  std::int64_t rows = 0;
};

/// Requests are collected first; run() reads and packs them. What a request fills in must outlive run().
class WeightLoader {
 public:
  WeightLoader(TensorSource& source, ops::Device& device) : source_(source), device_(device) {}

  void linear(StackedLinear& out, std::vector<ModuleRows> modules, std::int64_t cols, bool bias);
  void vector(std::vector<float>& out, std::string name, std::int64_t size);

  /// Packs everything on as many threads as this process has cores, the caller's included; `progress` is called on that
  /// one. The first error stops the rest. kCancelled's reason is the token's own.
  [[nodiscard]] Result<void> run(const LoadProgress& progress, const CancellationToken& cancellation);

 private:
  struct LinearRequest {
    StackedLinear* out;
    std::vector<ModuleRows> modules;
    std::int64_t cols;
    bool bias;
    [[nodiscard]] std::int64_t elements() const;
  };
  struct VectorRequest {
    std::vector<float>* out;
    std::string name;
    std::int64_t size;
  };
  [[nodiscard]] Result<void> pack(const LinearRequest& request);

  TensorSource& source_;
  ops::Device& device_;
  std::vector<LinearRequest> linears_;
  std::vector<VectorRequest> vectors_;
};

}  // namespace quern::model
