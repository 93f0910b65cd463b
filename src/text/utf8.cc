// UTF-8 out of bytes that may break off anywhere.
#include "quern/text/utf8.h"

#include <cstddef>
#include <cstdint>

namespace quern::text {
namespace {

struct Sequence {
  std::size_t length = 0;   // of the whole character; 0: no character begins so
  std::uint8_t low = 0x80;  // bounds of the second byte
  std::uint8_t high = 0xBF;
};

Sequence sequence_of(std::uint8_t lead) {
  if (lead < 0x80) return {.length = 1};
  if (lead >= 0xC2 && lead <= 0xDF) return {.length = 2};
  if (lead == 0xE0) return {.length = 3, .low = 0xA0};
  if (lead == 0xED) return {.length = 3, .high = 0x9F};  // no surrogates
  if (lead >= 0xE1 && lead <= 0xEF) return {.length = 3};
  if (lead == 0xF0) return {.length = 4, .low = 0x90};
  if (lead == 0xF4) return {.length = 4, .high = 0x8F};  // nothing above U+10FFFF
  if (lead >= 0xF1 && lead <= 0xF3) return {.length = 4};
  return {};
}

}  // namespace

std::string take_whole_characters(std::string& held) {
  std::string out;
  out.reserve(held.size());
  std::size_t at = 0;
  while (at < held.size()) {
    const Sequence sequence = sequence_of(static_cast<std::uint8_t>(held[at]));
    std::size_t good = 1;
    while (good < sequence.length && at + good < held.size()) {
      const auto byte = static_cast<std::uint8_t>(held[at + good]);
      if (byte < (good == 1 ? sequence.low : 0x80) || byte > (good == 1 ? sequence.high : 0xBF)) break;
      ++good;
    }
    if (good == sequence.length) {
      out.append(held, at, good);
    } else if (sequence.length > 0 && at + good == held.size()) {
      break;  // it may be continued
    } else {
      out.append(kReplacementCharacter);
    }
    at += good;
  }
  held.erase(0, at);
  return out;
}

}  // namespace quern::text
