// UTF-8 out of bytes that may break off anywhere.
#pragma once

#include <string>
#include <string_view>

namespace quern::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// Takes the whole characters from the front of `held`, and leaves what may still become one: at most 3 bytes. Bytes
/// that can't begin or continue a character become U+FFFD, one for each longest beginning of a character (as Unicode
/// advises, and as Python's errors="replace" does).
[[nodiscard]] std::string take_whole_characters(std::string& held);

}  // namespace quern::text
