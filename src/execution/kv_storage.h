// KvStorage: the bytes of paged keys and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quern/model/config.h"
#include "quern/ops/device.h"
#include "quern/tensor/buffer.h"
#include "quern/tensor/dtype.h"

namespace quern::execution {

/// Keys and values of every layer, each [P, G, S, D]. Address space is taken at once, memory by the system when a page
/// is first written. Which pages are in use is kv::PageCache's business.
class KvStorage {
 public:
  KvStorage(const model::ModelConfig& config, tensor::DType dtype, std::int32_t pages);

  /// Bytes of one page over all layers.
  [[nodiscard]] static std::size_t page_bytes(const model::ModelConfig& config, tensor::DType dtype);
  [[nodiscard]] std::size_t page_bytes() const { return plane_page_bytes_ * planes_.size(); }
  /// One a layer; they borrow this storage.
  [[nodiscard]] std::span<const ops::KvLayer> layers() const { return layers_; }
  /// Page `from` over page `to`, in every layer.
  void copy_page(std::int32_t from, std::int32_t to);

 private:
  std::size_t plane_page_bytes_ = 0;  // a page's keys, or values, in one layer
  std::vector<tensor::Buffer<std::byte>> planes_;
  std::vector<ops::KvLayer> layers_;
};

}  // namespace quern::execution
