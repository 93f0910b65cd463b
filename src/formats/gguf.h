// GGUF v2 and v3: untrusted bytes to metadata and validated tensor views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quern/base/result.h"
#include "quern/os/memory_map.h"
#include "quern/tensor/encoding.h"

namespace quern::formats {

/// A metadata value. Strings are views into the map; arrays stay in the file and are read through GgufArray.
struct GgufArray;
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

/// An array in the file: element type checked, bounds checked, strings indexed lazily.
struct GgufArray {
  enum class Element : std::uint8_t { kUnsigned, kSigned, kFloat, kBool, kString, kArray };
  Element element = Element::kUnsigned;
  std::uint8_t wire_type = 0;        // GGUF's own number
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;  // exactly the elements

  /// kInvalidFile when the elements aren't of the kind asked for.
  [[nodiscard]] Result<std::vector<std::string_view>> strings() const;
  [[nodiscard]] Result<std::vector<std::int64_t>> integers() const;
  [[nodiscard]] Result<std::vector<double>> numbers() const;
};

struct GgufTensor {
  std::string_view name;
  std::vector<std::int64_t> shape;  // outermost first (GGUF stores the reverse)
  tensor::Encoding encoding = tensor::Encoding::kF32;
  std::span<const std::byte> data;

  /// A 1-D tensor is one row; leading dimensions are folded into rows.
  [[nodiscard]] tensor::MatrixView matrix() const;
};

/// A parsed, memory-mapped file. Everything that it hands out lives as long as it does. Immutable, thread-safe.
class GgufFile {
 public:
  /// kIo when it can't be opened, kInvalidFile with file, field and offset, kUnsupportedFormat names an IQ or unknown type.
  [[nodiscard]] static Result<GgufFile> open(const std::filesystem::path& path);
  /// The same over bytes in memory that the caller keeps (fuzzing, tests). `name` stands in messages.
  [[nodiscard]] static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;
  /// Typed look-ups: nothing when absent, kInvalidFile when of another type.
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view key) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string_view>> string(std::string_view key) const;
  [[nodiscard]] Result<std::optional<GgufArray>> array(std::string_view key) const;

  [[nodiscard]] const std::map<std::string_view, GgufValue>& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  /// Lets the system drop the pages of a tensor that won't be read again. No-op for parse().
  void drop_pages(const GgufTensor& tensor) const;

 private:
  std::string name_;
  std::shared_ptr<const os::MemoryMap> map_;  // null for parse()
  std::span<const std::byte> bytes_;
  std::map<std::string_view, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> index_;
};

}  // namespace quern::formats
