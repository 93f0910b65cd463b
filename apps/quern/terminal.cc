// Making control characters visible.
#include "terminal.h"

namespace quern::app {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// C1 controls (U+0080 to U+009F) and the bidirectional ones (U+202A to U+202E, U+2066 to U+2069); the length in bytes.
std::size_t hidden_control(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool embedding = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return embedding || isolate ? 3 : 0;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const char c = text.front();
    if (const std::size_t length = hidden_control(text); length > 0) {
      shown += kReplacement;
      text.remove_prefix(length);
      continue;
    }
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      shown += '^';
      shown += static_cast<char>(c ^ 0x40);
    } else {
      shown += c;
    }
    text.remove_prefix(1);
  }
  return shown;
}

}  // namespace quern::app
