// Small files beside a model, read whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "quern/base/result.h"

namespace quern::text {

/// The file's bytes; nothing when there is none. kIo when it can't be read, kInvalidFile when it's larger than 256 MiB.
[[nodiscard]] Result<std::optional<std::string>> read_text_file(const std::filesystem::path& path);

}  // namespace quern::text
