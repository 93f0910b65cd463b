// GGUF v2 and v3: untrusted bytes to metadata and validated tensor views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
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

/// An array in the file: types, counts and lengths were checked, the elements are read when asked for.
struct GgufArray {
  enum class Element : std::uint8_t { kUnsigned, kSigned, kFloat, kBool, kString, kArray };
  Element element = Element::kUnsigned;
  std::uint8_t wire_type = 0;  // of an element, GGUF's own number
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;  // exactly the elements
  std::string_view file;             // these three for messages
  std::string_view key;
  std::size_t offset = 0;  // of `bytes` in the file

  /// kInvalidFile when the elements aren't of the kind asked for. Integers are numbers too.
  [[nodiscard]] Result<std::vector<std::string_view>> strings() const;
  [[nodiscard]] Result<std::vector<std::int64_t>> integers() const;
  [[nodiscard]] Result<std::vector<double>> numbers() const;
};

/// A metadata value. Strings are views into the file; they may hold any bytes.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

/// A weight tensor: 1 to 4 dimensions, none of them 0; rows are whole blocks.
struct GgufTensor {
  std::string_view name;
  std::vector<std::int64_t> shape;  // outermost first (GGUF stores the reverse)
  tensor::Encoding encoding = tensor::Encoding::kF32;
  std::span<const std::byte> data;

  /// A 1-D tensor is one row; leading dimensions are folded into rows.
  [[nodiscard]] tensor::MatrixView matrix() const;
};

/// A parsed, memory-mapped file. Everything that it hands out lives as long as it or a copy of it. Immutable,
/// thread-safe.
class GgufFile {
 public:
  /// kIo when it can't be opened, kInvalidFile with file, field and offset; kUnsupportedFormat names a weight type that
  /// we can't run (IQ, TQ, MXFP4, unknown), a version, the other byte order, or a file that is one part of several.
  [[nodiscard]] static Result<GgufFile> open(const std::filesystem::path& path);
  /// The same over bytes in memory that the caller keeps (fuzzing, tests). `name` stands in messages.
  [[nodiscard]] static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const std::string& name() const { return *name_; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;
  /// Typed look-ups: nothing when absent, kInvalidFile when of another type or outside [low, high].
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t low = INT64_MIN,
                                                            std::int64_t high = INT64_MAX) const;
  /// Integers too; never infinite or NaN.
  [[nodiscard]] Result<std::optional<double>> number(std::string_view key, double low = -kLargest,
                                                     double high = kLargest) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string_view>> string(std::string_view key) const;
  [[nodiscard]] Result<std::optional<GgufArray>> array(std::string_view key) const;

  [[nodiscard]] const std::map<std::string_view, GgufValue>& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  /// Lets the system drop the pages of a tensor that won't be read again. No-op for parse().
  void drop_pages(const GgufTensor& tensor) const;

 private:
  static constexpr double kLargest = std::numeric_limits<double>::max();
  /// The error of a key that is there.
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view key, std::string_view what,
                                             ErrorCode code = ErrorCode::kInvalidFile) const;

  std::shared_ptr<const std::string> name_;   // arrays point to it
  std::shared_ptr<const os::MemoryMap> map_;  // null for parse()
  std::span<const std::byte> bytes_;
  std::map<std::string_view, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> index_;
};

}  // namespace quern::formats
