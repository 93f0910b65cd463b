// TensorSource: where a model's weights come from, under Hugging Face's names.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"
#include "quern/model/config.h"
#include "quern/model/loader.h"
#include "quern/tensor/encoding.h"

namespace quern::model {

/// A weight matrix, ready to be packed.
struct SourceMatrix {
  tensor::MatrixView view;
  std::vector<std::int32_t> row_order;  // as ops::WeightPart's
  /// Keeps the bytes. When the last copy goes, a file's pages are dropped and made ones are freed.
  std::shared_ptr<const void> lease;
};

/// Names are those of Hugging Face's Llama ("model.layers.0.self_attn.q_proj"), whatever the file calls them.
/// Thread-safe.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The weight [rows, cols] of a module. kInvalidFile when it is missing (by name) or of another shape (both are
  /// told).
  [[nodiscard]] virtual Result<SourceMatrix> matrix(std::string_view module, std::int64_t rows, std::int64_t cols) = 0;
  /// A vector of floats by its full name ("model.norm.weight"), as f32.
  [[nodiscard]] virtual Result<std::vector<float>> vector(std::string_view name, std::int64_t size) = 0;
  /// kInvalidFile names a tensor of the file that nothing asked for: a model that this graph isn't.
  [[nodiscard]] virtual Result<void> check_all_used() const = 0;
};

/// Tensors of a folder, MLX-quantized modules included. The files must outlive the source.
[[nodiscard]] std::unique_ptr<TensorSource> make_safetensors_source(const formats::SafeTensors& tensors,
                                                                    const formats::HfConfig& hf,
                                                                    const ModelConfig& config);
/// Tensors of a GGUF file. Undoes the converter's permutation of Q and K (see docs/adr).
[[nodiscard]] std::unique_ptr<TensorSource> make_gguf_source(const formats::GgufFile& file, const ModelConfig& config);
/// Random weights, a function of the seed and the module's name; made when asked for.
[[nodiscard]] std::unique_ptr<TensorSource> make_synthetic_source(const SyntheticSpec& spec, const ModelConfig& config);
/// The shape that a synthetic spec names.
[[nodiscard]] ModelConfig synthetic_config(const SyntheticSpec& spec);

/// Which tensors of a file were asked for.
class UsedNames {
 public:
  void add(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    names_.emplace(name);
  }
  [[nodiscard]] bool contains(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    return names_.contains(name);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace quern::model
