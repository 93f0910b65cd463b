// TensorSource over a GGUF file.
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "quern/base/check.h"
#include "quern/model/tensor_source.h"

namespace quern::model {
namespace {

using formats::GgufTensor;

/// What follows "model.layers.<n>." and what GGUF has after "blk.<n>.".
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLayerNames = {{
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOtherNames = {{
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
}};

/// "model.layers.7.mlp.up_proj" to "blk.7.ffn_up".
std::string gguf_module(std::string_view module) {
  constexpr std::string_view prefix = "model.layers.";
  if (module.starts_with(prefix)) {
    const std::string_view rest = module.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    for (const auto& [ours, theirs] : kLayerNames) {
      if (rest.substr(dot + 1) == ours) return fmt::format("blk.{}.{}", rest.substr(0, dot), theirs);
    }
  }
  for (const auto& [ours, theirs] : kOtherNames) {
    if (module == ours) return std::string(theirs);
  }
  QUERN_CHECK(false);
}

class GgufSource final : public TensorSource {
 public:
  GgufSource(const formats::GgufFile& file, const ModelConfig& config) : file_(file), config_(config) {
    for (const std::string_view read : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"}) {
      used_.add(read);  // config_from_gguf reads them
    }
  }

  Result<SourceMatrix> matrix(std::string_view module, std::int64_t rows, std::int64_t cols) override {
    QUERN_ASSIGN(const GgufTensor* found, find(gguf_module(module) + ".weight", {rows, cols}));
    const auto drop = [file = &file_, found](const void*) { file->drop_pages(*found); };
    return SourceMatrix{found->matrix(), row_order(module), {found, drop}};
  }

  Result<std::vector<float>> vector(std::string_view name, std::int64_t size) override {
    const std::size_t dot = name.rfind('.');
    const std::string_view module = name.substr(0, dot);
    QUERN_ASSIGN(const GgufTensor* found, find(gguf_module(module) + std::string(name.substr(dot)), {size}));
    std::vector<float> values(static_cast<std::size_t>(size));
    tensor::dequantize_row(found->matrix(), 0, values.data());
    const std::vector<std::int32_t> order = row_order(module);
    if (order.empty()) return values;
    std::vector<float> ordered;
    for (const std::int32_t row : order) ordered.push_back(values[static_cast<std::size_t>(row)]);
    return ordered;
  }

  Result<void> check_all_used() const override {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      return fail(ErrorCode::kInvalidFile, "{}: tensor '{}' doesn't belong to a '{}' of this configuration",
                  file_.name(), tensor.name, config_.architecture);
    }
    return {};
  }

 private:
  Result<const GgufTensor*> find(const std::string& name, const std::vector<std::int64_t>& shape) {
    const GgufTensor* found = file_.find_tensor(name);
    if (found == nullptr) return fail(ErrorCode::kInvalidFile, "{}: tensor '{}' is missing", file_.name(), name);
    if (found->shape != shape) {
      return fail(ErrorCode::kInvalidFile, "{}: tensor '{}' is [{}], expected [{}]", file_.name(), name,
                  fmt::join(found->shape, ", "), fmt::join(shape, ", "));
    }
    used_.add(name);
    return found;
  }

  /// The converter interleaves the two halves of each rotary head, since its own rotation pairs neighbours. Row r of
  /// the original is row order[r] of the file.
  [[nodiscard]] std::vector<std::int32_t> row_order(std::string_view module) const {
    const bool q = module.ends_with(".q_proj");
    if (!q && !module.ends_with(".k_proj")) return {};
    const std::int32_t half = config_.rotary_dim / 2;
    std::vector<std::int32_t> order;
    for (std::int32_t head = 0; head < (q ? config_.heads : config_.kv_heads); ++head) {
      const std::int32_t first = head * config_.head_dim;
      for (std::int32_t i = 0; i < config_.head_dim; ++i) {
        const std::int32_t paired = i < half ? 2 * i : 2 * (i - half) + 1;
        order.push_back(first + (i < config_.rotary_dim ? paired : i));
      }
    }
    return order;
  }

  const formats::GgufFile& file_;
  const ModelConfig& config_;
  UsedNames used_;
};

}  // namespace

std::unique_ptr<TensorSource> make_gguf_source(const formats::GgufFile& file, const ModelConfig& config) {
  return std::make_unique<GgufSource>(file, config);
}

}  // namespace quern::model
