// Kernels: the table of whole operations that each ISA fills; chosen once, when a device is made.
#pragma once

#include <cstdint>

#include "quern/ops/device.h"

namespace quern::cpu {

/// Output lanes of a panel.
inline constexpr int kLanes = 16;
/// Queries that one tile of attention holds at most.
inline constexpr int kTileQueries = 12;

enum class CodeType : std::uint8_t { kF32, kF16, kBf16, kU4, kU8 };
enum class ScaleType : std::uint8_t { kF32, kF16, kBf16 };

/// A packed matrix [N, K], as packed_matrix.h describes the layout. Borrows.
struct PanelView {
  CodeType code_type = CodeType::kF32;
  ScaleType scale_type = ScaleType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t group = 0;  // columns that share a scale; cols for the plain floats
  float center = 0.0F;     // symmetric: w = scale * (code - center), no biases; else 0
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  const std::uint8_t* biases = nullptr;
  std::int64_t panel_bytes = 0;  // of codes
};

/// y = (accumulate ? y : 0) + scale * (x * w^T + bias) over `tokens` rows.
struct LinearArgs {
  PanelView weight;
  std::int64_t tokens = 0;
  const float* x = nullptr;  // linear_f32: [T, K], rows x_stride apart
  std::int64_t x_stride = 0;
  const std::int8_t* q = nullptr;   // linear_int8: [T, K]
  const float* q_scales = nullptr;  // [T, K / group]
  const float* q_sums = nullptr;    // [T, K / group], of the int8 values
  const float* bias = nullptr;      // [N] or null
  float scale = 1.0F;
  bool accumulate = false;
  float* y = nullptr;  // [T, N], rows y_stride apart
  std::int64_t y_stride = 0;
};

/// Queries of one row that read the same KV head, and where its pages are.
struct AttentionTile {
  std::int32_t queries = 0;
  const float* q[kTileQueries] = {};      // [D] each
  std::int64_t first[kTileQueries] = {};  // keys that it sees: positions [first, last)
  std::int64_t last[kTileQueries] = {};
  const std::int32_t* pages = nullptr;    // of the row
  const std::uint16_t* keys = nullptr;    // [P, G, D, S] f16, moved to this KV head
  const std::uint16_t* values = nullptr;  // [P, G, S, D] f16, moved to this KV head
  std::int64_t page_stride = 0;           // elements from page to page: G * S * D
  std::int32_t head_dim = 0;
  float scale = 1.0F;
  float softcap = 0.0F;
};

/// What attention has gathered for one query: the largest score, the sum of exp(score - largest), and the sum of values
/// so weighted, [D]. Starts as {-infinity, 0, zeros}.
inline constexpr int kStateHeader = 2;

struct Kernels {
  /// As --cpu-isa takes it.
  const char* name;
  /// One row of activations to int8: per group, scale = largest magnitude / 127, nearest even. cols % group == 0.
  void (*quantize)(const float* x, std::int64_t cols, std::int64_t group, std::int8_t* q, float* scales, float* sums);
  /// Panels [first, last).
  void (*linear_int8)(const LinearArgs& args, std::int64_t first, std::int64_t last);
  void (*linear_f32)(const LinearArgs& args, std::int64_t first, std::int64_t last);
  void (*rms_norm)(const float* x, const float* weight, std::int64_t cols, float epsilon, float* out);
  void (*gated)(ops::Activation activation, const float* gate, const float* up, std::int64_t count, float* out);
  /// Pairs (i, i + half), for i in [0, half).
  void (*rotate_halves)(float* head, const float* cosines, const float* sines, std::int64_t half);
  /// Saturates at the largest f16.
  void (*to_f16)(const float* x, std::int64_t count, std::uint16_t* out);
  /// Takes key blocks [first, last) into the queries' states, in order. states [queries, kStateHeader + D].
  void (*attend)(const AttentionTile& tile, std::int64_t first_block, std::int64_t last_block, float* states);
  /// Takes a later state into an earlier one; the same bits as if `attend` had gone on.
  void (*merge)(float* state, const float* later, std::int32_t head_dim);
  /// out = values / sum.
  void (*finish)(const float* state, std::int32_t head_dim, float* out);
};

/// Null when this build hasn't got it.
const Kernels* avx2_kernels();
const Kernels* avx2_vnni_kernels();
const Kernels* avx512_kernels();

}  // namespace quern::cpu
