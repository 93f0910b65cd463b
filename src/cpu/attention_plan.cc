// Tiles are independent. When there are too few to share out, each key block of a tile becomes a piece, and whoever
// finishes a tile's last piece merges them in order: the same sums in the same order as one pass over the blocks.
#include "quern/cpu/attention_plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "quern/base/check.h"

namespace quern::cpu {
namespace {

/// With fewer tiles than this for each thread, key blocks are shared out too.
constexpr std::size_t kTilesPerThread = 4;

using States = std::array<float, static_cast<std::size_t>(kTileQueries) * (kStateHeader + ops::kMaxHeadDim)>;

void clear(float* states, std::int64_t queries, std::int64_t head_dim) {
  const std::int64_t stride = kStateHeader + head_dim;
  std::fill_n(states, queries * stride, 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) states[i * stride] = -std::numeric_limits<float>::infinity();
}

}  // namespace

struct AttentionPlan::Call {
  const Kernels& kernels;
  WorkerPool& pool;
  const ops::AttentionShape& shape;
  const ops::Mat q;
  const ops::KvLayer& kv;
  const ops::Mat out;

  [[nodiscard]] AttentionTile tile(const Tile& of) const {
    const std::int64_t kv_head = of.head / (shape.heads / shape.kv_heads);
    const std::int64_t head_size = std::int64_t{ops::kPageTokens} * shape.head_dim;
    AttentionTile tile{.queries = of.tokens * of.heads,
                       .pages = of.row->pages.data(),
                       .keys = reinterpret_cast<const std::uint16_t*>(kv.keys) + kv_head * head_size,
                       .values = reinterpret_cast<const std::uint16_t*>(kv.values) + kv_head * head_size,
                       .page_stride = shape.kv_heads * head_size,
                       .head_dim = shape.head_dim,
                       .scale = shape.scale,
                       .softcap = shape.softcap};
    for (std::int32_t i = 0; i < tile.queries; ++i) {
      const std::int64_t position = of.row->first_position + of.token + i / of.heads;
      tile.q[i] = place(q, of, i);
      tile.first[i] = shape.window > 0 ? std::max<std::int64_t>(0, position + 1 - shape.window) : 0;
      tile.last[i] = position + 1;
    }
    return tile;
  }

  void finish(const Tile& of, const float* states) const {
    for (std::int32_t i = 0; i < of.tokens * of.heads; ++i) {
      kernels.finish(states + i * (kStateHeader + shape.head_dim), shape.head_dim, place(out, of, i));
    }
  }

  [[nodiscard]] float* place(const ops::Mat& mat, const Tile& of, std::int32_t query) const {
    const std::int64_t token = of.row->first_token + of.token + query / of.heads;
    return mat.row(token) + std::int64_t{of.head + query % of.heads} * shape.head_dim;
  }
};

void AttentionPlan::run(const Kernels& kernels, WorkerPool& pool, const ops::Batch& batch,
                        const ops::AttentionShape& shape, ops::Mat q, const ops::KvLayer& kv, ops::Mat out) {
  cut(batch, shape);
  const Call call{kernels, pool, shape, q, kv, out};
  const std::size_t enough = kTilesPerThread * static_cast<std::size_t>(pool.threads());
  pool.threads() == 1 || tiles_.size() >= enough ? run_tiles(call) : run_pieces(call);
}

void AttentionPlan::cut(const ops::Batch& batch, const ops::AttentionShape& shape) {
  tiles_.clear();
  const std::int32_t shared = shape.heads / shape.kv_heads;
  const std::int32_t heads = std::min(shared, kTileQueries);
  const std::int32_t tokens = kTileQueries / heads;
  for (const ops::BatchRow& row : batch.rows) {
    for (std::int32_t token = 0; token < row.tokens; token += tokens) {
      Tile tile{.row = &row, .token = token, .tokens = std::min(tokens, row.tokens - token)};
      const std::int64_t position = std::int64_t{row.first_position} + token;
      const std::int64_t first = shape.window > 0 ? std::max<std::int64_t>(0, position + 1 - shape.window) : 0;
      tile.first_block = first / ops::kKeyBlock;
      tile.last_block = (position + tile.tokens - 1) / ops::kKeyBlock + 1;
      for (std::int32_t head = 0; head < shape.heads; head += tile.heads) {
        tile.head = head;
        tile.heads = std::min(heads, shared - head % shared);
        tiles_.push_back(tile);
      }
    }
  }
}

void AttentionPlan::run_tiles(const Call& call) {
  call.pool.run(static_cast<std::int64_t>(tiles_.size()), [&](std::int64_t chunk) {
    const Tile& of =
        tiles_[tiles_.size() - 1 - static_cast<std::size_t>(chunk)];  // a row's last tokens see the most keys
    const AttentionTile tile = call.tile(of);
    States states;
    clear(states.data(), tile.queries, tile.head_dim);
    call.kernels.attend(tile, of.first_block, of.last_block, states.data());
    call.finish(of, states.data());
  });
}

void AttentionPlan::run_pieces(const Call& call) {
  pieces_.clear();
  first_piece_.clear();
  if (unfinished_size_ < tiles_.size()) {
    unfinished_size_ = tiles_.size();
    unfinished_ = std::make_unique<std::atomic<std::int64_t>[]>(unfinished_size_);
  }
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    first_piece_.push_back(static_cast<std::int64_t>(pieces_.size()));
    for (std::int64_t block = tiles_[i].first_block; block < tiles_[i].last_block; ++block) {
      pieces_.push_back({static_cast<std::int32_t>(i), block});
    }
    unfinished_[i].store(tiles_[i].last_block - tiles_[i].first_block, std::memory_order_relaxed);
  }
  const std::int64_t state_size = kStateHeader + call.shape.head_dim;
  const std::int64_t piece_size = kTileQueries * state_size;
  const std::size_t wanted = pieces_.size() * static_cast<std::size_t>(piece_size);
  if (states_.size() < wanted) states_ = tensor::Buffer<float>(wanted, tensor::Buffer<float>::Fill::kNone);
  call.pool.run(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t chunk) {
    const Piece& piece = pieces_[static_cast<std::size_t>(chunk)];
    const auto index = static_cast<std::size_t>(piece.tile);
    const Tile& of = tiles_[index];
    const AttentionTile tile = call.tile(of);
    float* states = states_.data() + chunk * piece_size;
    clear(states, tile.queries, tile.head_dim);
    call.kernels.attend(tile, piece.block, piece.block + 1, states);
    if (unfinished_[index].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    float* first = states_.data() + first_piece_[index] * piece_size;
    for (std::int64_t p = 1; p < of.last_block - of.first_block; ++p) {
      for (std::int64_t i = 0; i < tile.queries; ++i) {
        call.kernels.merge(first + i * state_size, first + p * piece_size + i * state_size, tile.head_dim);
      }
    }
    call.finish(of, first);
  });
}

}  // namespace quern::cpu
