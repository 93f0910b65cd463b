// The scalar f32 reference. Written to be read: one loop a sum, in the order of the formula.
#include "quern/ops/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quern/base/check.h"
#include "quern/ops/checks.h"
#include "quern/ops/rope.h"
#include "quern/tensor/buffer.h"

namespace quern::ops {
namespace {

class ReferenceWeight final : public Weight {
 public:
  explicit ReferenceWeight(PackedShape shape)
      : shape_(shape), values_(static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols)) {}
  [[nodiscard]] std::int64_t rows() const override { return shape_.rows; }
  [[nodiscard]] std::int64_t cols() const override { return shape_.cols; }
  [[nodiscard]] std::size_t bytes() const override { return values_.bytes(); }
  [[nodiscard]] const float* row(std::int64_t r) const { return values_.data() + r * shape_.cols; }
  [[nodiscard]] float* row(std::int64_t r) { return values_.data() + r * shape_.cols; }

 private:
  PackedShape shape_;
  tensor::Buffer<float> values_;
};

const ReferenceWeight& as_reference(const Weight& weight) {
  const auto* reference = dynamic_cast<const ReferenceWeight*>(&weight);
  QUERN_CHECK(reference != nullptr);
  return *reference;
}

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

float activate(Activation activation, float x) {
  constexpr float kSqrt2OverPi = 0.7978845608028654F;
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0F + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5F * x * (1.0F + std::tanh(kSqrt2OverPi * (x + 0.044715F * x * x * x)));
    case Activation::kGelu:
      return 0.5F * x * (1.0F + std::erf(x * 0.7071067811865476F));
  }
  QUERN_CHECK(false);
}

/// Rotates the first 2 * rope.inverse_frequency.size() elements of one head.
void rotate(const Rope& rope, const float* cosines, const float* sines, float* head) {
  const std::size_t half = rope.inverse_frequency.size();
  for (std::size_t i = 0; i < half; ++i) {
    const bool halves = rope.pairing == Rope::Pairing::kHalves;
    float& a = head[halves ? i : 2 * i];
    float& b = head[halves ? i + half : 2 * i + 1];
    const float rotated = a * cosines[i] - b * sines[i];
    b = b * cosines[i] + a * sines[i];
    a = rotated;
  }
}

/// Start of one key or value [D] in its pages, which the reference keeps as [P, G, S, D].
float* kv_at(std::byte* base, const KvLayer& kv, const BatchRow& row, std::int64_t position, std::int64_t head) {
  const std::int64_t page = row.pages[static_cast<std::size_t>(position / kPageTokens)];
  const std::int64_t slot = position % kPageTokens;
  return reinterpret_cast<float*>(base) + ((page * kv.kv_heads + head) * kPageTokens + slot) * kv.head_dim;
}

/// One query head over the keys of its row at positions [first, last]. q and out [D].
void attend(const AttentionShape& shape, const KvLayer& kv, const BatchRow& row, std::int64_t kv_head,
            std::int64_t first, std::int64_t last, const float* q, float* out) {
  std::vector<float> weights(static_cast<std::size_t>(last - first + 1));
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t p = first; p <= last; ++p) {
    float score = shape.scale * dot(q, kv_at(kv.keys, kv, row, p, kv_head), shape.head_dim);
    if (shape.softcap > 0.0F) score = shape.softcap * std::tanh(score / shape.softcap);
    weights[static_cast<std::size_t>(p - first)] = score;
    largest = std::max(largest, score);
  }
  float total = 0.0F;
  for (float& weight : weights) total += weight = std::exp(weight - largest);
  std::fill_n(out, shape.head_dim, 0.0F);
  for (std::int64_t p = first; p <= last; ++p) {
    const float* value = kv_at(kv.values, kv, row, p, kv_head);
    const float weight = weights[static_cast<std::size_t>(p - first)] / total;
    for (std::int32_t d = 0; d < shape.head_dim; ++d) out[d] += weight * value[d];
  }
}

class ReferenceDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] tensor::DType kv_dtype() const override { return tensor::DType::kF32; }

  [[nodiscard]] Result<std::unique_ptr<Weight>> pack(std::span<const WeightPart> parts) override {
    QUERN_ASSIGN(const PackedShape shape, check_parts(parts));
    auto weight = std::make_unique<ReferenceWeight>(shape);
    std::int64_t out = 0;
    for (const WeightPart& part : parts) {
      for (std::int64_t r = 0; r < part_rows(part); ++r) {
        tensor::dequantize_row(part.view, source_row(part, r), weight->row(out++));
      }
    }
    return std::unique_ptr<Weight>(std::move(weight));
  }

  void embed(const Weight& table, std::span<const std::int32_t> ids, float scale, Mat out) override {
    check_embed(table, ids, out);
    for (std::int64_t t = 0; t < out.rows; ++t) {
      const float* row = as_reference(table).row(ids[static_cast<std::size_t>(t)]);
      for (std::int64_t i = 0; i < out.cols; ++i) out.row(t)[i] = scale * row[i];
    }
  }

  void rms_norm(Mat x, std::span<const float> weight, float epsilon, Mat out) override {
    check_rms_norm(x, weight, out);
    for (std::int64_t t = 0; t < x.rows; ++t) {
      const float mean = dot(x.row(t), x.row(t), x.cols) / static_cast<float>(x.cols);
      const float factor = 1.0F / std::sqrt(mean + epsilon);
      for (std::int64_t i = 0; i < x.cols; ++i) {
        out.row(t)[i] = x.row(t)[i] * factor * weight[static_cast<std::size_t>(i)];
      }
    }
  }

  void linear(const Weight& weight, Mat x, Mat y, const LinearOptions& options) override {
    check_linear(weight, x, y, options);
    for (std::int64_t t = 0; t < x.rows; ++t) {
      for (std::int64_t n = 0; n < y.cols; ++n) {
        float value = dot(x.row(t), as_reference(weight).row(n), x.cols);
        if (!options.bias.empty()) value += options.bias[static_cast<std::size_t>(n)];
        value *= options.scale;
        y.row(t)[n] = options.accumulate ? y.row(t)[n] + value : value;
      }
    }
  }

  void rope_store(const Batch& batch, const Rope& rope, const AttentionShape& shape, Mat q, Mat k, Mat v,
                  const KvLayer& kv) override {
    check_rope_store(batch, rope, shape, q, k, v, kv, kv_dtype());
    std::vector<float> cosines(rope.inverse_frequency.size());
    std::vector<float> sines(rope.inverse_frequency.size());
    for (const BatchRow& row : batch.rows) {
      for (std::int32_t i = 0; i < row.tokens; ++i) {
        const std::int32_t position = row.first_position + i;
        const std::int64_t t = row.first_token + i;
        rope_angles(rope, position, cosines.data(), sines.data());
        for (std::int32_t h = 0; h < shape.heads; ++h) {
          rotate(rope, cosines.data(), sines.data(), q.row(t) + std::int64_t{h} * shape.head_dim);
        }
        for (std::int32_t g = 0; g < shape.kv_heads; ++g) {
          float* key = k.row(t) + std::int64_t{g} * shape.head_dim;
          rotate(rope, cosines.data(), sines.data(), key);
          std::copy_n(key, shape.head_dim, kv_at(kv.keys, kv, row, position, g));
          std::copy_n(v.row(t) + std::int64_t{g} * shape.head_dim, shape.head_dim,
                      kv_at(kv.values, kv, row, position, g));
        }
      }
    }
  }

  void attention(const Batch& batch, const AttentionShape& shape, Mat q, const KvLayer& kv, Mat out) override {
    check_attention(batch, shape, q, kv, out, kv_dtype());
    for (const BatchRow& row : batch.rows) {
      for (std::int32_t i = 0; i < row.tokens; ++i) {
        const std::int64_t last = std::int64_t{row.first_position} + i;
        const std::int64_t first = shape.window > 0 ? std::max<std::int64_t>(0, last - shape.window + 1) : 0;
        for (std::int32_t h = 0; h < shape.heads; ++h) {
          const std::int64_t at = std::int64_t{h} * shape.head_dim;
          const std::int64_t t = row.first_token + i;
          attend(shape, kv, row, h / (shape.heads / shape.kv_heads), first, last, q.row(t) + at, out.row(t) + at);
        }
      }
    }
  }

  void gated(Activation activation, Mat gate, Mat up, Mat out) override {
    check_gated(gate, up, out);
    for (std::int64_t t = 0; t < out.rows; ++t) {
      for (std::int64_t i = 0; i < out.cols; ++i) out.row(t)[i] = activate(activation, gate.row(t)[i]) * up.row(t)[i];
    }
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<ReferenceDevice>();
}

}  // namespace quern::ops
