// The home's paths, and making its folders.
#include "quern/store/home.h"

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "quern/os/system_reason.h"

namespace quern::store {

std::filesystem::path Home::job_log(std::string_view id) const {
  return root_ / "jobs" / (std::string(id) + ".log");
}

Result<void> ensure_folder(const std::filesystem::path& folder) {
  std::filesystem::path made;
  for (const auto& part : folder) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) == 0) continue;
    const int error = errno;
    std::error_code ignored;
    if (std::filesystem::is_directory(made, ignored)) continue;
    return fail(ErrorCode::kIo, "can't make the folder {}: {}", made.string(), os::system_reason(error));
  }
  return {};
}

}  // namespace quern::store
