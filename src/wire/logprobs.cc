// Log probabilities to JSON.
#include "quern/wire/internal/logprobs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace quern::wire {
namespace {

// JSON knows no infinity: this is how OpenAI's API writes an impossible token.
constexpr float kImpossible = -9999.0F;

Json value_of(float logprob) {
  if (std::isnan(logprob)) return nullptr;
  return static_cast<double>(std::max(logprob, kImpossible));
}

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

/// Whether `bytes` are whole UTF-8 characters. The lengths are what matters: an engine makes no overlong forms.
bool whole_characters(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > bytes.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if (starts_character(bytes[i + k])) return false;
    }
    i += length;
  }
  return true;
}

/// A token's text; one that is no whole characters is written as its bytes, so that tokens stay distinct.
std::string shown(std::string_view bytes) {
  if (whole_characters(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json chat_token(const TokenLogprob& token) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", shown(token.bytes)}, {"logprob", value_of(token.logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

Json chat_logprobs(const std::vector<TokenLogprobs>& tokens) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = chat_token(token.token);
    Json top = Json::array();
    for (const TokenLogprob& other : token.top) top.push_back(chat_token(other));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json completion_logprobs(const std::vector<TokenLogprobs>& tokens, std::int64_t& offset) {
  Json texts = Json::array();
  Json logprobs = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const TokenLogprobs& token : tokens) {
    texts.push_back(shown(token.token.bytes));
    logprobs.push_back(value_of(token.token.logprob));
    offsets.push_back(offset);
    offset += std::ranges::count_if(token.token.bytes, starts_character);
    if (std::isnan(token.token.logprob)) {
      tops.push_back(nullptr);
      continue;
    }
    Json top = Json::object();
    for (const TokenLogprob& other : token.top) top.emplace(shown(other.bytes), value_of(other.logprob));
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace quern::wire
