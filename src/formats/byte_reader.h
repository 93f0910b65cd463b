// ByteReader: a cursor over untrusted bytes; nothing is read before it is known to be there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "quern/base/result.h"

namespace quern::formats {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read in place");

/// A value at any address.
template <class T>
[[nodiscard]] T load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// Reads forward through a file's bytes, which it borrows, as it does the file's name. Errors are kInvalidFile and name
/// the file, the field that was entered and the offset.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  /// What is being read from here on, for messages.
  void enter(std::string field) { field_ = std::move(field); }
  [[nodiscard]] const std::string& field() const { return field_; }
  [[nodiscard]] std::size_t offset() const { return offset_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }

  /// The next `size` bytes.
  [[nodiscard]] Result<std::span<const std::byte>> take(std::uint64_t size) {
    last_ = offset_;
    if (size > remaining()) return invalid(fmt::format("needs {} bytes, {} are left", size, remaining()));
    const auto part = bytes_.subspan(offset_, static_cast<std::size_t>(size));
    offset_ += part.size();
    return part;
  }

  template <class T>
  [[nodiscard]] Result<T> read() {
    QUERN_ASSIGN(const auto part, take(sizeof(T)));
    return load<T>(part.data());
  }

  /// A u64 length and as many bytes.
  [[nodiscard]] Result<std::string_view> read_string(std::uint64_t limit) {
    QUERN_ASSIGN(const auto length, read<std::uint64_t>());
    if (length > limit) return invalid(fmt::format("a string of {} bytes, the limit is {}", length, limit));
    QUERN_ASSIGN(const auto part, take(length));
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  }

  /// An error of what was read, or couldn't be read, last.
  [[nodiscard]] std::unexpected<Error> invalid(std::string_view what) const {
    return fail(ErrorCode::kInvalidFile, "{}: {} at byte {}: {}", file_, field_, last_, what);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::string field_;
  std::size_t offset_ = 0;
  std::size_t last_ = 0;  // where the last value begins
};

}  // namespace quern::formats
