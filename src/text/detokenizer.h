// Incremental detokenizer: tokens in, whole UTF-8 characters out.
#pragma once

#include <string>

#include "quern/text/tokenizer.h"

namespace quern::text {

/// One reply's state. Not thread-safe. The tokenizer must outlive it.
class Detokenizer {
 public:
  /// `continues`: the reply continues a text, so that a SentencePiece space at its beginning is kept.
  explicit Detokenizer(const Tokenizer& tokenizer, bool continues = false)
      : tokenizer_(tokenizer), first_(!continues) {}

  /// Text that this token completes: never half a character; bytes that can't begin or continue one become U+FFFD as
  /// soon as that is certain. Special tokens give nothing. May be empty.
  [[nodiscard]] std::string push(TokenId id);
  /// Bytes of an unfinished character are held back; at the end of a reply they are dropped.
  [[nodiscard]] bool holds_partial() const { return !held_.empty(); }

 private:
  const Tokenizer& tokenizer_;
  std::string held_;
  bool first_;
};

}  // namespace quern::text
