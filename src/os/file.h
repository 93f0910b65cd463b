// Whole small files, read with a limit and written so that nobody sees half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "quern/base/result.h"

namespace quern::os {

/// kIo with path and reason; kInvalidFile when it is larger than `limit_bytes`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit_bytes);
/// Writes beside the destination, syncs, renames. On failure the destination is unchanged.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace quern::os
