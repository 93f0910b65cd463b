// printable().
#include "quern/formats/printable.h"

#include <fmt/format.h>

namespace quern::formats {

std::string printable(std::string_view text) {
  constexpr std::size_t kLimit = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kLimit)) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kLimit ? "'..." : "'";
  return out;
}

}  // namespace quern::formats
