// Incremental detokenizer: tokens in, whole UTF-8 characters out.
#include "quern/text/detokenizer.h"

#include "quern/text/utf8.h"

namespace quern::text {

std::string Detokenizer::push(TokenId id) {
  if (tokenizer_.is_special(id)) return {};
  held_ += tokenizer_.token_bytes(id, first_);
  first_ = false;
  return take_whole_characters(held_);
}

}  // namespace quern::text
