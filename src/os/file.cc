// read_file and write_file.
#include "quern/os/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "quern/os/descriptor.h"
#include "quern/os/system_reason.h"

namespace quern::os {
namespace {

Result<void> write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(ErrorCode::kIo, "{}", system_reason(errno));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(descriptor) != 0) return fail(ErrorCode::kIo, "{}", system_reason(errno));
  return {};
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return fail(ErrorCode::kIo, "can't open {}: {}", path.string(), system_reason(errno));
  std::string content;
  std::array<char, 65536> chunk;
  for (;;) {
    const ssize_t got = ::read(file.value(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, "can't read {}: {}", path.string(), system_reason(errno));
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
    if (content.size() > limit_bytes) {
      return fail(ErrorCode::kInvalidFile, "{}: larger than the limit of {} bytes", path.string(), limit_bytes);
    }
  }
}

Result<void> write_file(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return fail(ErrorCode::kIo, "can't write beside {}: {}", path.string(), system_reason(errno));
  auto written = write_all(file.value(), content);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = fail(ErrorCode::kIo, "{}", system_reason(errno));
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kIo, "can't write {}: {}", path.string(), written.error().message);
  }
  return {};
}

}  // namespace quern::os
