// system_reason: what the system says of an errno.
#pragma once

#include <string>
#include <system_error>

namespace quern::os {

/// "No such file or directory" and the like. Thread-safe.
[[nodiscard]] inline std::string system_reason(int error) {
  return std::generic_category().message(error);
}

}  // namespace quern::os
