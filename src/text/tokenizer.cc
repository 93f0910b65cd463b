// Tokenizer: what every kind of one does the same way.
#include "quern/text/tokenizer.h"

#include "quern/text/utf8.h"

namespace quern::text {

Result<std::vector<TokenId>> Tokenizer::encode_prompt(std::string_view text, Special special) const {
  QUERN_ASSIGN(std::vector<TokenId> ids, encode(text, special));
  put_bos(ids);
  return ids;
}

void Tokenizer::put_bos(std::vector<TokenId>& ids) const {
  const std::optional<TokenId> id = bos();
  if (!id) return;
  // One is the most that a prompt begins with, however many its text spells out.
  while (add_bos() && ids.size() > 1 && ids[0] == *id && ids[1] == *id) ids.erase(ids.begin());
  if (add_bos() && (ids.empty() || ids.front() != *id)) ids.insert(ids.begin(), *id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  bool first = true;
  for (const TokenId id : ids) {
    if (is_special(id)) continue;
    bytes += token_bytes(id, first);
    first = false;
  }
  std::string text = take_whole_characters(bytes);
  if (!bytes.empty()) text += kReplacementCharacter;
  return text;
}

}  // namespace quern::text
