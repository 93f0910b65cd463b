// Digests of files.
#pragma once

#include <filesystem>
#include <string>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"

namespace quern::os {

/// SHA-256 of a file's content, 64 lower-case hexadecimal digits. Reads it once, a megabyte at a time. kIo with the
/// path and the system's reason; the token's reason when cancelled between reads.
[[nodiscard]] Result<std::string> sha256_file(const std::filesystem::path& path,
                                              const CancellationToken& cancellation = {});

}  // namespace quern::os
