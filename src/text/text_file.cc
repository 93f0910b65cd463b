// Small files beside a model, read whole.
#include "quern/text/text_file.h"

#include <cstdint>
#include <fstream>
#include <system_error>

namespace quern::text {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

}  // namespace

Result<std::optional<std::string>> read_text_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<std::string>();
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", path.string(), error.message());
  if (size > kMostBytes) {
    return fail(ErrorCode::kInvalidFile, "{}: {} bytes, more than {}", path.string(), size, kMostBytes);
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return fail(ErrorCode::kIo, "{}: can't be read", path.string());
  }
  return std::optional(std::move(text));
}

}  // namespace quern::text
