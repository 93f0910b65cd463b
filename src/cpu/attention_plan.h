// AttentionPlan: how attention over a batch is cut into tiles of queries and, for few of them, into key blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "quern/cpu/kernels.h"
#include "quern/cpu/worker_pool.h"
#include "quern/ops/device.h"
#include "quern/tensor/buffer.h"

namespace quern::cpu {

/// Runs attention; keeps its scratch between calls. One thread at a time.
class AttentionPlan {
 public:
  /// As Device::attention, with shapes checked.
  void run(const Kernels& kernels, WorkerPool& pool, const ops::Batch& batch, const ops::AttentionShape& shape,
           ops::Mat q, const ops::KvLayer& kv, ops::Mat out);

 private:
  /// Queries of `tokens` tokens of a row and `heads` heads that share a KV head.
  struct Tile {
    const ops::BatchRow* row = nullptr;
    std::int32_t token = 0;  // within the row
    std::int32_t tokens = 0;
    std::int32_t head = 0;
    std::int32_t heads = 0;
    std::int64_t first_block = 0;  // key blocks that any of them sees: [first, last)
    std::int64_t last_block = 0;
  };
  struct Call;
  /// One key block of a tile, computed apart.
  struct Piece {
    std::int32_t tile;
    std::int64_t block;
  };

  void cut(const ops::Batch& batch, const ops::AttentionShape& shape);
  void run_tiles(const Call& call);
  void run_pieces(const Call& call);

  std::vector<Tile> tiles_;
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> first_piece_;                    // of each tile
  std::unique_ptr<std::atomic<std::int64_t>[]> unfinished_;  // pieces of each tile
  std::size_t unfinished_size_ = 0;
  tensor::Buffer<float> states_;  // [piece][kTileQueries][kStateHeader + D]
};

}  // namespace quern::cpu
