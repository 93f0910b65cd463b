// The Llama family: Llama, Mistral, SmolLM2 and 3, MiniCPM, Yi.
#include "quern/model/llama.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "quern/base/check.h"
#include "quern/model/rope.h"
#include "quern/model/weight_loader.h"
#include "quern/tensor/buffer.h"

namespace quern::model {
namespace {

using ops::Mat;

struct Layer {
  std::vector<float> attention_norm;     // [E]
  StackedLinear qkv;                     // [(H + 2G) * D, E]
  StackedLinear output;                  // [E, H * D]
  std::vector<float> feed_forward_norm;  // [E]
  StackedLinear gate_up;                 // [2F, E]
  StackedLinear down;                    // [E, F]
};

class Llama final : public Model {
 public:
  Llama(const ModelConfig& config, std::int64_t context, ops::Device& device)
      : config_(config),
        device_(device),
        rope_(rope_table(config, context)),
        layers_(static_cast<std::size_t>(config.layers)),
        q_width_(std::int64_t{config.heads} * config.head_dim),
        kv_width_(std::int64_t{config.kv_heads} * config.head_dim) {}

  Result<void> load(TensorSource& source, const LoadProgress& progress, const CancellationToken& cancellation);

  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] std::size_t weight_bytes() const override;
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t tokens, std::int64_t outputs) const override {
    return scratch_elements(tokens, outputs) * sizeof(float);
  }
  void forward(const ops::Batch& batch, std::span<const ops::KvLayer> kv, std::span<float> logits,
               const Observer& observer) override;

 private:
  /// Activations of one pass, views into scratch_.
  struct Activations {
    Mat hidden;  // [T, E], the residual stream
    Mat narrow;  // [T, max(E, H * D)]: normalized values, then attention's result
    Mat wide;    // [T, max((H + 2G) * D, 2F)]: q, k and v, then gate and up
    Mat last;    // [outputs, E]
  };
  [[nodiscard]] std::int64_t narrow_width() const { return std::max<std::int64_t>(config_.hidden, q_width_); }
  [[nodiscard]] std::int64_t wide_width() const {
    return std::max<std::int64_t>(q_width_ + 2 * kv_width_, 2 * std::int64_t{config_.feed_forward});
  }
  [[nodiscard]] std::size_t scratch_elements(std::int64_t tokens, std::int64_t outputs) const {
    return static_cast<std::size_t>(tokens * (config_.hidden + narrow_width() + wide_width()) +
                                    outputs * config_.hidden);
  }
  Activations activations(std::int64_t tokens, std::int64_t outputs);
  void attention(std::size_t index, const ops::Batch& batch, const ops::KvLayer& kv, const Activations& a,
                 const Observer& observer);
  void feed_forward(std::size_t index, const Activations& a, const Observer& observer);

  ModelConfig config_;
  ops::Device& device_;
  RopeTable rope_;
  StackedLinear embedding_;  // [V, E]
  std::vector<Layer> layers_;
  std::vector<float> final_norm_;  // [E]
  StackedLinear head_;             // [V, E]; unused when tied
  std::int64_t q_width_;
  std::int64_t kv_width_;
  tensor::Buffer<float> scratch_;
};

Result<void> Llama::load(TensorSource& source, const LoadProgress& progress, const CancellationToken& cancellation) {
  const std::int64_t hidden = config_.hidden;
  const std::int64_t feed_forward = config_.feed_forward;
  const bool attention_bias = config_.attention_bias;
  const bool mlp_bias = config_.mlp_bias;
  WeightLoader loader(source, device_);
  loader.linear(embedding_, {{"model.embed_tokens", config_.vocab}}, hidden, false);
  if (!config_.tied_embeddings) loader.linear(head_, {{"lm_head", config_.vocab}}, hidden, false);
  loader.vector(final_norm_, "model.norm.weight", hidden);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const auto name = [&](std::string_view module) { return fmt::format("model.layers.{}.{}", i, module); };
    loader.vector(layer.attention_norm, name("input_layernorm.weight"), hidden);
    loader.linear(layer.qkv,
                  {{name("self_attn.q_proj"), q_width_},
                   {name("self_attn.k_proj"), kv_width_},
                   {name("self_attn.v_proj"), kv_width_}},
                  hidden, attention_bias);
    loader.linear(layer.output, {{name("self_attn.o_proj"), hidden}}, q_width_, attention_bias);
    loader.vector(layer.feed_forward_norm, name("post_attention_layernorm.weight"), hidden);
    loader.linear(layer.gate_up, {{name("mlp.gate_proj"), feed_forward}, {name("mlp.up_proj"), feed_forward}}, hidden,
                  mlp_bias);
    loader.linear(layer.down, {{name("mlp.down_proj"), hidden}}, feed_forward, mlp_bias);
  }
  QUERN_TRY(loader.run(progress, cancellation));
  return source.check_all_used();
}

std::size_t Llama::weight_bytes() const {
  std::size_t total = embedding_.bytes() + head_.bytes() + final_norm_.size() * sizeof(float);
  for (const Layer& layer : layers_) {
    total += (layer.attention_norm.size() + layer.feed_forward_norm.size()) * sizeof(float) + layer.qkv.bytes() +
             layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  }
  return total;
}

Llama::Activations Llama::activations(std::int64_t tokens, std::int64_t outputs) {
  const std::size_t needed = scratch_elements(tokens, outputs);
  if (scratch_.size() < needed) {
    scratch_ = {};  // the old one first: never both
    scratch_ = tensor::Buffer<float>(needed, tensor::Buffer<float>::Fill::kNone);
  }
  float* next = scratch_.data();
  const auto take = [&next](std::int64_t rows, std::int64_t cols) {
    const Mat mat{next, rows, cols, cols};
    next += rows * cols;
    return mat;
  };
  Activations a;
  a.hidden = take(tokens, config_.hidden);
  a.narrow = take(tokens, narrow_width());
  a.wide = take(tokens, wide_width());
  a.last = take(outputs, config_.hidden);
  return a;
}

void observe(const Observer& observer, std::size_t layer, std::string_view name, Mat values) {
  if (observer) observer(fmt::format("layer.{}.{}", layer, name), values);
}

void Llama::attention(std::size_t index, const ops::Batch& batch, const ops::KvLayer& kv, const Activations& a,
                      const Observer& observer) {
  const Layer& layer = layers_[index];
  const Mat normalized = a.narrow.columns(0, config_.hidden);
  device_.rms_norm(a.hidden, layer.attention_norm, static_cast<float>(config_.norm_epsilon), normalized);
  observe(observer, index, "attention_norm", normalized);

  const Mat qkv = a.wide.columns(0, q_width_ + 2 * kv_width_);
  layer.qkv.apply(device_, normalized, qkv);
  const Mat q = qkv.columns(0, q_width_);
  const Mat k = qkv.columns(q_width_, kv_width_);
  const Mat v = qkv.columns(q_width_ + kv_width_, kv_width_);
  observe(observer, index, "q", q);
  observe(observer, index, "k", k);
  observe(observer, index, "v", v);

  const ops::AttentionShape shape{.heads = config_.heads,
                                  .kv_heads = config_.kv_heads,
                                  .head_dim = config_.head_dim,
                                  .scale = config_.attention_scale,
                                  .window = config_.window};
  ops::Rope rope;
  if (config_.layer_without_rope.empty() || !config_.layer_without_rope[index]) {
    rope = {.inverse_frequency = rope_.inverse_frequency, .magnitude = rope_.magnitude};
  }
  device_.rope_store(batch, rope, shape, q, k, v, kv);
  observe(observer, index, "q_rotated", q);
  const Mat result = a.narrow.columns(0, q_width_);
  device_.attention(batch, shape, q, kv, result);
  observe(observer, index, "attention", result);
  layer.output.apply(device_, result, a.hidden, config_.residual_scale, true);
  observe(observer, index, "attention_output", a.hidden);
}

void Llama::feed_forward(std::size_t index, const Activations& a, const Observer& observer) {
  const Layer& layer = layers_[index];
  const Mat normalized = a.narrow.columns(0, config_.hidden);
  device_.rms_norm(a.hidden, layer.feed_forward_norm, static_cast<float>(config_.norm_epsilon), normalized);
  observe(observer, index, "feed_forward_norm", normalized);
  const Mat gate_up = a.wide.columns(0, 2 * std::int64_t{config_.feed_forward});
  const Mat gate = gate_up.columns(0, config_.feed_forward);
  layer.gate_up.apply(device_, normalized, gate_up);
  device_.gated(config_.activation, gate, gate_up.columns(config_.feed_forward, config_.feed_forward), gate);
  observe(observer, index, "gated", gate);
  layer.down.apply(device_, gate, a.hidden, config_.residual_scale, true);
  observe(observer, index, "output", a.hidden);
}

void Llama::forward(const ops::Batch& batch, std::span<const ops::KvLayer> kv, std::span<float> logits,
                    const Observer& observer) {
  const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
  const auto outputs = static_cast<std::int64_t>(batch.outputs.size());
  QUERN_CHECK(kv.size() == layers_.size());
  QUERN_CHECK(logits.size() == batch.outputs.size() * static_cast<std::size_t>(config_.vocab));
  const Activations a = activations(tokens, outputs);

  device_.embed(embedding_.weight(), batch.tokens, config_.embedding_scale, a.hidden);
  if (observer) observer("embedding", a.hidden);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    attention(i, batch, kv[i], a, observer);
    feed_forward(i, a, observer);
  }
  if (outputs == 0) return;
  for (std::int64_t i = 0; i < outputs; ++i) {
    std::copy_n(a.hidden.row(batch.outputs[static_cast<std::size_t>(i)]), config_.hidden, a.last.row(i));
  }
  device_.rms_norm(a.last, final_norm_, static_cast<float>(config_.norm_epsilon), a.last);
  if (observer) observer("final_norm", a.last);
  const Mat out{logits.data(), outputs, config_.vocab, config_.vocab};
  (config_.tied_embeddings ? embedding_ : head_).apply(device_, a.last, out, config_.logit_scale);
  if (observer) observer("logits", out);
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(const ModelConfig& config, std::int64_t context, TensorSource& source,
                                          ops::Device& device, const LoadProgress& progress,
                                          const CancellationToken& cancellation) {
  auto model = std::make_unique<Llama>(config, context, device);
  QUERN_TRY(model->load(source, progress, cancellation));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quern::model
