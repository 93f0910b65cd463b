// Two planes a layer, left untouched until pages are written.
#include "quern/execution/kv_storage.h"

#include <cstring>

namespace quern::execution {
namespace {

std::size_t plane_page_bytes(const model::ModelConfig& config, tensor::DType dtype) {
  return static_cast<std::size_t>(config.kv_heads) * static_cast<std::size_t>(config.head_dim) *
         static_cast<std::size_t>(ops::kPageTokens) * tensor::dtype_bytes(dtype);
}

}  // namespace

KvStorage::KvStorage(const model::ModelConfig& config, tensor::DType dtype, std::int32_t pages)
    : plane_page_bytes_(plane_page_bytes(config, dtype)) {
  using Plane = tensor::Buffer<std::byte>;
  planes_.reserve(2U * static_cast<std::size_t>(config.layers));  // references to planes stay good while they are added
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    Plane& keys = planes_.emplace_back(plane_page_bytes_ * static_cast<std::size_t>(pages), Plane::Fill::kNone);
    Plane& values = planes_.emplace_back(plane_page_bytes_ * static_cast<std::size_t>(pages), Plane::Fill::kNone);
    layers_.push_back({keys.data(), values.data(), dtype, pages, config.kv_heads, config.head_dim});
  }
}

std::size_t KvStorage::page_bytes(const model::ModelConfig& config, tensor::DType dtype) {
  return plane_page_bytes(config, dtype) * 2U * static_cast<std::size_t>(config.layers);
}

void KvStorage::copy_page(std::int32_t from, std::int32_t to) {
  for (tensor::Buffer<std::byte>& plane : planes_) {
    std::memcpy(plane.data() + static_cast<std::size_t>(to) * plane_page_bytes_,
                plane.data() + static_cast<std::size_t>(from) * plane_page_bytes_, plane_page_bytes_);
  }
}

}  // namespace quern::execution
