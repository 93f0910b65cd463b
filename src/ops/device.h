// Device: what each operation of a forward pass means, implemented by the scalar reference here, by cpu and, later, by
// cuda.
//
// Shapes are row-major, outermost first. T tokens of all rows packed together, B rows (sequences), H query heads, G KV
// heads, D head size, E model size, F feed-forward, V vocabulary, P pages, S tokens a page. Activations are f32. Matmul
// is y[T,N] = x[T,K] * w[N,K]^T.
//
// Bits: the result for one token never depends on T, on its row's place, on threads, chunks or page ids. Blocking and
// reduction order depend on the ISA, the weight's type, N, K and the absolute position of a key only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/tensor/dtype.h"
#include "quern/tensor/encoding.h"

namespace quern::ops {

/// Tokens a KV page holds.
inline constexpr int kPageTokens = 16;
/// Keys that attention reduces as one block, at absolute positions [i * 256, (i + 1) * 256).
inline constexpr int kKeyBlock = 256;
/// The largest head size that a device must take.
inline constexpr int kMaxHeadDim = 512;

/// A matrix of activations, rows of `cols` floats that start `stride` floats apart. Borrows.
struct Mat {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t r) const { return data + r * stride; }
  /// Columns [first, first + count) of each row.
  [[nodiscard]] Mat columns(std::int64_t first, std::int64_t count) const {
    return {data + first, rows, count, stride};
  }
};

/// One sequence's tokens in a packed batch.
struct BatchRow {
  std::int32_t first_token = 0;              // index into the packed tokens
  std::int32_t tokens = 0;                   // how many, >= 1; they are consecutive positions
  std::int32_t first_position = 0;           // position of the first of them = keys already stored
  std::span<const std::int32_t> pages = {};  // page ids, for positions [0, first_position + tokens) at least
};

/// Tokens of all rows packed into one list; prefill, decode and mixed iterations alike.
struct Batch {
  std::span<const std::int32_t> tokens = {};   // [T] token ids
  std::span<const BatchRow> rows = {};         // [B], covering [0, T) in order
  std::span<const std::int32_t> outputs = {};  // indices into tokens whose logits are wanted, ascending
};

/// One layer's KV pages: keys and values each [P, G, S * D], f16 or (for the reference) f32. How the S * D elements of
/// one page and head are ordered is the device's affair; a page may be copied or moved whole. Borrows.
struct KvLayer {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  tensor::DType dtype = tensor::DType::kF16;
  std::int32_t pages = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
};

/// Rotary embedding as tables that the model computes once: angle(position, i) = position * inverse_frequency[i].
struct Rope {
  enum class Pairing : std::uint8_t { kHalves, kAdjacent };  // (i, i + n/2) as Hugging Face; (2i, 2i + 1)
  std::span<const float> inverse_frequency = {};             // [rotary_dim / 2]; empty = no rotation at all
  float magnitude = 1.0F;                                    // multiplies sine and cosine (yarn, longrope)
  Pairing pairing = Pairing::kHalves;
};

struct AttentionShape {
  std::int32_t heads = 0;     // H
  std::int32_t kv_heads = 0;  // G, divides H
  std::int32_t head_dim = 0;  // D
  float scale = 0.0F;         // multiplies q.k, usually D^-0.5
  std::int32_t window = 0;    // a query sees its last `window` keys, itself included; 0 = all
  float softcap = 0.0F;       // > 0: s = softcap * tanh(s / softcap)
};

/// Part of a weight matrix to be packed: rows of `view`, in the order given. Several parts stack along N (fused QKV).
struct WeightPart {
  tensor::MatrixView view;
  /// Output row r is the view's row row_order[r]; empty = as they are. Undoes what converters permute.
  std::span<const std::int32_t> row_order = {};
};

/// A weight matrix [N, K] in the layout that its device wants. Immutable; shared between threads.
class Weight {
 public:
  virtual ~Weight() = default;
  [[nodiscard]] virtual std::int64_t rows() const = 0;  // N
  [[nodiscard]] virtual std::int64_t cols() const = 0;  // K
  [[nodiscard]] virtual std::size_t bytes() const = 0;  // resident
};

/// What `linear` does beside the product: y = (accumulate ? y : 0) + scale * (x * w^T + bias).
struct LinearOptions {
  std::span<const float> bias = {};  // [N] or empty
  float scale = 1.0F;
  bool accumulate = false;
};

enum class Activation : std::uint8_t { kSilu, kGeluTanh, kGelu };

/// The operations. One thread at a time calls them (the engine's); a device spreads the work over workers of its own.
/// Shapes were checked when the model was built; a wrong one here is our bug (QUERN_CHECK). Nothing allocates per call
/// beyond scratch that grows once.
class Device {
 public:
  virtual ~Device() = default;
  /// "reference", "avx2", "avx512", ... as --cpu-isa takes it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Element type that it wants of KvLayer.
  [[nodiscard]] virtual tensor::DType kv_dtype() const = 0;

  /// Copies and repacks; the parts' bytes may go afterwards. All parts have the same K. Thread-safe.
  /// kUnsupportedFormat by name when the device has no kernel for an encoding or width.
  [[nodiscard]] virtual Result<std::unique_ptr<Weight>> pack(std::span<const WeightPart> parts) = 0;

  /// out[t] = scale * table[ids[t]], dequantized exactly. table [V, E], out [T, E].
  virtual void embed(const Weight& table, std::span<const std::int32_t> ids, float scale, Mat out) = 0;
  /// out = x / sqrt(mean(x^2) + epsilon) * weight. x, out [T, E], weight [E]. May be in place.
  virtual void rms_norm(Mat x, std::span<const float> weight, float epsilon, Mat out) = 0;
  /// x [T, K], y [T, N].
  virtual void linear(const Weight& weight, Mat x, Mat y, const LinearOptions& options) = 0;
  /// Rotates q [T, H*D] in place and k [T, G*D], stores k and v [T, G*D] into the batch's pages.
  virtual void rope_store(const Batch& batch, const Rope& rope, const AttentionShape& shape, Mat q, Mat k, Mat v,
                          const KvLayer& kv) = 0;
  /// out [T, H*D] = softmax(scale * q.k) * v over each row's keys at positions <= the query's, within the window.
  virtual void attention(const Batch& batch, const AttentionShape& shape, Mat q, const KvLayer& kv, Mat out) = 0;
  /// out = activation(gate) * up, all [T, F]. May be in place.
  virtual void gated(Activation activation, Mat gate, Mat up, Mat out) = 0;
};

}  // namespace quern::ops
