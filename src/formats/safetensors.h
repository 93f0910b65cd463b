// safetensors, one file or sharded: untrusted bytes to validated tensor views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/os/memory_map.h"
#include "quern/tensor/dtype.h"

namespace quern::formats {

struct SafeTensor {
  tensor::DType dtype = tensor::DType::kF32;
  std::vector<std::int64_t> shape;  // outermost first
  std::span<const std::byte> data;
};

/// The tensors of a model, memory-mapped. What it hands out lives as long as it does. Immutable, thread-safe.
class SafeTensors {
 public:
  /// A folder: model.safetensors.index.json with its shards when present, else model.safetensors, else the only
  /// *.safetensors in it; or one file. kIo, or kInvalidFile with file, field and offset.
  [[nodiscard]] static Result<SafeTensors> open(const std::filesystem::path& path);
  /// One file's bytes in memory that the caller keeps (fuzzing, tests).
  [[nodiscard]] static Result<SafeTensors> parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const SafeTensor* find(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, SafeTensor, std::less<>>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  /// Lets the system drop the pages of a tensor that won't be read again.
  void drop_pages(const SafeTensor& tensor) const;

 private:
  std::vector<std::shared_ptr<const os::MemoryMap>> maps_;
  std::map<std::string, SafeTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace quern::formats
