// printable(): text of an untrusted file, made fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace quern::formats {

/// In single quotes, what isn't printable ASCII as \xNN, cut after 80 bytes.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace quern::formats
