// TensorSource over safetensors: plain floats and MLX's quantized modules.
#include <fmt/ranges.h>

#include "quern/formats/weight_matrix.h"
#include "quern/model/tensor_source.h"

namespace quern::model {
namespace {

using formats::SafeTensor;

class SafetensorsSource final : public TensorSource {
 public:
  SafetensorsSource(const formats::SafeTensors& tensors, const formats::HfConfig& hf, const ModelConfig& config)
      : tensors_(tensors), hf_(hf) {
    if (config.tied_embeddings) used_.add("lm_head.weight");  // some writers store the shared matrix twice
  }

  Result<SourceMatrix> matrix(std::string_view module, std::int64_t rows, std::int64_t cols) override {
    QUERN_ASSIGN(const tensor::MatrixView view, formats::weight_matrix(tensors_, module, hf_.quantization()));
    if (view.rows != rows || view.cols != cols) {
      return fail(ErrorCode::kInvalidFile, "{}: '{}.weight' is [{}, {}], expected [{}, {}]", tensors_.name(), module,
                  view.rows, view.cols, rows, cols);
    }
    std::vector<const SafeTensor*> parts;
    for (const std::string_view part : {"weight", "scales", "biases"}) {
      const std::string name = fmt::format("{}.{}", module, part);
      if (const SafeTensor* found = tensors_.find(name)) {
        used_.add(name);
        parts.push_back(found);
      }
    }
    const auto drop = [tensors = &tensors_, parts](const void*) {
      for (const SafeTensor* part : parts) tensors->drop_pages(*part);
    };
    return SourceMatrix{view, {}, {&tensors_, drop}};
  }

  Result<std::vector<float>> vector(std::string_view name, std::int64_t size) override {
    const SafeTensor* found = tensors_.find(name);
    if (found == nullptr) return fail(ErrorCode::kInvalidFile, "{}: there is no tensor '{}'", tensors_.name(), name);
    if (found->shape != std::vector{size}) {
      return fail(ErrorCode::kInvalidFile, "{}: '{}' is [{}], expected [{}]", tensors_.name(), name,
                  fmt::join(found->shape, ", "), size);
    }
    used_.add(name);
    const auto encoding = tensor::float_encoding(found->dtype);
    if (!encoding) {
      return fail(ErrorCode::kUnsupportedFormat, "{}: '{}' is {}, expected F32, F16 or BF16", tensors_.name(), name,
                  tensor::dtype_name(found->dtype));
    }
    const tensor::MatrixView view{.encoding = *encoding, .rows = 1, .cols = size, .data = found->data};
    std::vector<float> values(static_cast<std::size_t>(size));
    tensor::dequantize_row(view, 0, values.data());
    return values;
  }

  Result<void> check_all_used() const override {
    for (const auto& [name, tensor] : tensors_.tensors()) {
      if (used_.contains(name) || name.ends_with(".rotary_emb.inv_freq")) continue;
      return fail(ErrorCode::kInvalidFile, "{}: '{}' doesn't belong to a {} of this configuration", tensors_.name(),
                  name, hf_.model_type());
    }
    return {};
  }

 private:
  const formats::SafeTensors& tensors_;
  const formats::HfConfig& hf_;
  UsedNames used_;
};

}  // namespace

std::unique_ptr<TensorSource> make_safetensors_source(const formats::SafeTensors& tensors, const formats::HfConfig& hf,
                                                      const ModelConfig& config) {
  return std::make_unique<SafetensorsSource>(tensors, hf, config);
}

}  // namespace quern::model
