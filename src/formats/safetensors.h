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
  std::vector<std::int64_t> shape;  // outermost first; empty for a scalar; a dimension may be 0
  std::span<const std::byte> data;  // at any address: the format aligns nothing
  std::uint32_t file = 0;           // which shard, see file_name()
  std::size_t offset = 0;           // of its description in that file, for messages
};

/// The tensors of a model, memory-mapped. What it hands out lives as long as it or a copy of it. Immutable,
/// thread-safe.
class SafeTensors {
 public:
  /// A folder: model.safetensors.index.json with its shards when present, else model.safetensors, else the only
  /// *.safetensors in it; or one file, an index too. kIo, kInvalidFile with file, field and offset, or
  /// kUnsupportedFormat that names a dtype. Tensors of a shard that the index doesn't name aren't there.
  [[nodiscard]] static Result<SafeTensors> open(const std::filesystem::path& path);
  /// One file's bytes in memory that the caller keeps (fuzzing, tests).
  [[nodiscard]] static Result<SafeTensors> parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const SafeTensor* find(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, SafeTensor, std::less<>>& tensors() const { return tensors_; }
  /// Of the first file that has any.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  [[nodiscard]] const std::string& file_name(const SafeTensor& tensor) const { return files_[tensor.file]; }
  /// The folder or file that was opened.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Lets the system drop the pages of a tensor that won't be read again. No-op for parse().
  void drop_pages(const SafeTensor& tensor) const;

 private:
  [[nodiscard]] static Result<SafeTensors> open_file(const std::filesystem::path& path);
  [[nodiscard]] static Result<SafeTensors> open_index(const std::filesystem::path& path);

  std::string name_;
  std::vector<std::string> files_;
  std::vector<std::shared_ptr<const os::MemoryMap>> maps_;  // one a file; empty for parse()
  std::map<std::string, SafeTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

/// model.safetensors.index.json: which shard each tensor is in. A shard is a plain file name that ends in .safetensors.
struct ShardIndex {
  std::map<std::string, std::string, std::less<>> shard_of;  // tensor to shard
  std::vector<std::string> shards;                           // each once, by name
};
[[nodiscard]] Result<ShardIndex> parse_shard_index(std::string_view json, std::string_view name);

}  // namespace quern::formats
