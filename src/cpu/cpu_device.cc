// The CPU device: cuts each operation into chunks for the pool and calls the ISA's kernels.
#include "quern/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "quern/base/check.h"
#include "quern/cpu/attention_plan.h"
#include "quern/cpu/kernels.h"
#include "quern/cpu/packed_matrix.h"
#include "quern/cpu/rope_tables.h"
#include "quern/cpu/worker_pool.h"
#include "quern/ops/checks.h"
#include "quern/ops/reference.h"
#include "quern/os/cpu_features.h"

namespace quern::cpu {
namespace {

/// Work below this many elements isn't worth a second thread.
constexpr std::int64_t kElementsInChunk = 8192;
/// Weight bytes times tokens that make a chunk of a product: some microseconds.
constexpr std::int64_t kProductInChunk = 32 * 1024;

/// Scratch that grows to the largest size asked for, contents not kept.
template <class T>
T* grow(tensor::Buffer<T>& buffer, std::int64_t size) {
  const auto wanted = static_cast<std::size_t>(size);
  if (buffer.size() < wanted) buffer = tensor::Buffer<T>(wanted, tensor::Buffer<T>::Fill::kNone);
  return buffer.data();
}

void rotate_adjacent(float* head, const float* cosines, const float* sines, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cosines[i] - b * sines[i];
    head[2 * i + 1] = b * cosines[i] + a * sines[i];
  }
}

const CpuWeight& as_packed(const ops::Weight& weight) {
  const auto* packed = dynamic_cast<const CpuWeight*>(&weight);
  QUERN_CHECK(packed != nullptr);
  return *packed;
}

class CpuDevice final : public ops::Device {
 public:
  CpuDevice(const Kernels& kernels, int threads, Compute compute)
      : kernels_(kernels), compute_(compute), pool_(threads) {}

  [[nodiscard]] std::string_view name() const override { return kernels_.name; }
  [[nodiscard]] tensor::DType kv_dtype() const override { return tensor::DType::kF16; }

  [[nodiscard]] Result<std::unique_ptr<ops::Weight>> pack(std::span<const ops::WeightPart> parts) override {
    return pack_weight(parts, pool_);
  }

  void embed(const ops::Weight& table, std::span<const std::int32_t> ids, float scale, ops::Mat out) override {
    ops::check_embed(table, ids, out);
    for_rows(out, [&](std::int64_t t) {
      std::int64_t row = ids[static_cast<std::size_t>(t)];
      for (const PackedMatrix& matrix : as_packed(table).matrices()) {
        if (row < matrix.rows()) return matrix.dequantize(row, scale, out.row(t));
        row -= matrix.rows();
      }
    });
  }

  void rms_norm(ops::Mat x, std::span<const float> weight, float epsilon, ops::Mat out) override {
    ops::check_rms_norm(x, weight, out);
    for_rows(x, [&](std::int64_t t) { kernels_.rms_norm(x.row(t), weight.data(), x.cols, epsilon, out.row(t)); });
  }

  void gated(ops::Activation activation, ops::Mat gate, ops::Mat up, ops::Mat out) override {
    ops::check_gated(gate, up, out);
    for_rows(out, [&](std::int64_t t) { kernels_.gated(activation, gate.row(t), up.row(t), out.cols, out.row(t)); });
  }

  void linear(const ops::Weight& weight, ops::Mat x, ops::Mat y, const ops::LinearOptions& options) override {
    ops::check_linear(weight, x, y, options);
    std::int64_t first = 0;  // output of the matrix
    std::int64_t group = 0;  // that the activations are quantized in now
    for (const PackedMatrix& matrix : as_packed(weight).matrices()) {
      const bool int8 = matrix.format().quantized() && compute_ == Compute::kInt8;
      if (int8 && group != matrix.format().group) quantize(x, group = matrix.format().group);
      const LinearArgs args{.weight = matrix.view(),
                            .tokens = x.rows,
                            .x = x.data,
                            .x_stride = x.stride,
                            .q = q_.data(),
                            .q_scales = q_scales_.data(),
                            .q_sums = q_sums_.data(),
                            .bias = options.bias.empty() ? nullptr : options.bias.data() + first,
                            .scale = options.scale,
                            .accumulate = options.accumulate,
                            .y = y.data + first,
                            .y_stride = y.stride};
      multiply(matrix, args, int8 ? kernels_.linear_int8 : kernels_.linear_f32);
      first += matrix.rows();
    }
  }

  void rope_store(const ops::Batch& batch, const ops::Rope& rope, const ops::AttentionShape& shape, ops::Mat q,
                  ops::Mat k, ops::Mat v, const ops::KvLayer& kv) override {
    ops::check_rope_store(batch, rope, shape, q, k, v, kv, kv_dtype());
    const float* angles = rope_tables_.angles(batch, rope);
    for (const ops::BatchRow& row : batch.rows) {
      const ops::Mat of_row{.data = q.row(row.first_token), .rows = row.tokens, .cols = q.cols, .stride = q.stride};
      for_rows(of_row, [&](std::int64_t i) {
        const std::int64_t t = row.first_token + i;
        const auto half = static_cast<std::int64_t>(rope.inverse_frequency.size());
        rotate(rope, shape.heads, shape.head_dim, angles + t * 2 * half, q.row(t));
        rotate(rope, shape.kv_heads, shape.head_dim, angles + t * 2 * half, k.row(t));
        store(kv, row, row.first_position + i, k.row(t), v.row(t));
      });
    }
  }

  void attention(const ops::Batch& batch, const ops::AttentionShape& shape, ops::Mat q, const ops::KvLayer& kv,
                 ops::Mat out) override {
    ops::check_attention(batch, shape, q, kv, out, kv_dtype());
    attention_.run(kernels_, pool_, batch, shape, q, kv, out);
  }

 private:
  /// body(t) for each row, several rows a chunk.
  template <class Body>
  void for_rows(const ops::Mat& mat, const Body& body) {
    const std::int64_t rows = std::max<std::int64_t>(1, kElementsInChunk / mat.cols);
    pool_.run((mat.rows + rows - 1) / rows, [&](std::int64_t chunk) {
      const std::int64_t end = std::min(mat.rows, (chunk + 1) * rows);
      for (std::int64_t t = chunk * rows; t < end; ++t) body(t);
    });
  }

  void quantize(const ops::Mat& x, std::int64_t group) {
    const std::int64_t groups = x.cols / group;
    std::int8_t* q = grow(q_, x.rows * x.cols);
    float* scales = grow(q_scales_, x.rows * groups);
    float* sums = grow(q_sums_, x.rows * groups);
    for_rows(x, [&](std::int64_t t) {
      kernels_.quantize(x.row(t), x.cols, group, q + t * x.cols, scales + t * groups, sums + t * groups);
    });
  }

  void multiply(const PackedMatrix& matrix, const LinearArgs& args, decltype(Kernels::linear_f32) kernel) {
    if (args.tokens == 0) return;
    const std::int64_t panels = matrix.panels();
    const std::int64_t enough = (kProductInChunk + matrix.panel_bytes() - 1) / (matrix.panel_bytes() * args.tokens) + 1;
    const std::int64_t fair = panels / (8 * pool_.threads());
    const std::int64_t size = std::max(enough, fair);
    pool_.run((panels + size - 1) / size,
              [&](std::int64_t chunk) { kernel(args, chunk * size, std::min(panels, (chunk + 1) * size)); });
  }

  void rotate(const ops::Rope& rope, std::int32_t heads, std::int32_t head_dim, const float* angles, float* row) const {
    const auto half = static_cast<std::int64_t>(rope.inverse_frequency.size());
    const auto turn = rope.pairing == ops::Rope::Pairing::kHalves ? kernels_.rotate_halves : rotate_adjacent;
    for (std::int32_t h = 0; h < heads; ++h) turn(row + std::int64_t{h} * head_dim, angles, angles + half, half);
  }

  /// Keys lie across their page, [D, S], so that one register holds a page's scores; values lie along it, [S, D].
  void store(const ops::KvLayer& kv, const ops::BatchRow& row, std::int64_t position, const float* k,
             const float* v) const {
    const std::int64_t page = row.pages[static_cast<std::size_t>(position / ops::kPageTokens)];
    const std::int64_t slot = position % ops::kPageTokens;
    const std::int64_t dim = kv.head_dim;
    std::array<std::uint16_t, ops::kMaxHeadDim> key;
    for (std::int64_t g = 0; g < kv.kv_heads; ++g) {
      const std::int64_t start = (page * kv.kv_heads + g) * ops::kPageTokens * dim;
      kernels_.to_f16(v + g * dim, dim, reinterpret_cast<std::uint16_t*>(kv.values) + start + slot * dim);
      kernels_.to_f16(k + g * dim, dim, key.data());
      std::uint16_t* keys = reinterpret_cast<std::uint16_t*>(kv.keys) + start + slot;
      for (std::int64_t d = 0; d < dim; ++d) keys[d * ops::kPageTokens] = key[static_cast<std::size_t>(d)];
    }
  }

  const Kernels& kernels_;
  const Compute compute_;
  WorkerPool pool_;
  RopeTables rope_tables_;
  AttentionPlan attention_;
  tensor::Buffer<std::int8_t> q_;
  tensor::Buffer<float> q_scales_;
  tensor::Buffer<float> q_sums_;
};

struct Entry {
  std::string_view name;
  bool supported;
  const Kernels* kernels;  // null: the reference
};

std::vector<Entry> entries() {
  const os::CpuFeatures& features = os::cpu_features();
  std::vector<Entry> all;
  const auto add = [&](const Kernels* kernels, bool supported) {
    if (kernels != nullptr) all.push_back({kernels->name, supported, kernels});
  };
  add(avx512_kernels(), features.avx512 && features.avx512_vnni && features.avx2);
  add(avx2_vnni_kernels(), features.avx2 && features.avx_vnni);
  add(avx2_kernels(), features.avx2);
  all.push_back({"reference", true, nullptr});
  return all;
}

}  // namespace

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (const Entry& entry : entries()) all.push_back({entry.name, entry.supported});
  return all;
}

Result<std::unique_ptr<ops::Device>> make_cpu_device(const CpuOptions& options) {
  if (options.threads < 0) return fail(ErrorCode::kInvalidRequest, "threads: {}; expected 0 or more", options.threads);
  std::string supported;
  for (const Entry& entry : entries()) {
    if (!entry.supported) continue;
    if (options.isa == "auto" || options.isa == entry.name) {
      if (entry.kernels == nullptr) return ops::make_reference_device();
      const int threads = options.threads > 0 ? options.threads : os::usable_cores();
      return std::unique_ptr<ops::Device>(std::make_unique<CpuDevice>(*entry.kernels, threads, options.compute));
    }
    supported += fmt::format("{}{}", supported.empty() ? "" : ", ", entry.name);
  }
  return fail(ErrorCode::kInvalidRequest, "instruction set \"{}\": this processor has {}", options.isa, supported);
}

}  // namespace quern::cpu
