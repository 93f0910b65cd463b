// MemoryMap: a file's bytes, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "quern/base/result.h"

namespace quern::os {

/// A private, read-only map of a whole file. Move-only; the bytes live as long as it does. A file that shrinks while
/// mapped raises SIGBUS on access, as with every map: files in the home are written under another name and renamed.
class MemoryMap {
 public:
  /// kIo with the path and the system's reason; an empty file gives no bytes; a folder is refused.
  [[nodiscard]] static Result<MemoryMap> open(const std::filesystem::path& path);
  MemoryMap() = default;
  MemoryMap(MemoryMap&& other) noexcept;
  MemoryMap& operator=(MemoryMap&& other) noexcept;
  ~MemoryMap();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  /// Starts reading a part ahead of its use.
  void will_need(std::span<const std::byte> part) const;
  /// Drops whole pages inside `part` from this process; a later read brings them back.
  void drop(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace quern::os
