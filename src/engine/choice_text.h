// ChoiceText: one choice's tokens to the text that may be shown, with the log probabilities that belong to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quern/engine/engine.h"
#include "quern/sampling/logprobs.h"
#include "quern/text/detokenizer.h"
#include "quern/text/stop_matcher.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

/// Whole characters only; nothing of a stop string. A token's log probability comes with the last of its text; the
/// bytes of all that were given concatenate to the text: where a stop or the end cuts a token, its bytes are cut, and
/// those after it are not listed. One thread at a time; the tokenizer outlives it.
class ChoiceText {
 public:
  ChoiceText(const text::Tokenizer& tokenizer, std::vector<std::string> stops, std::int64_t min_tokens)
      : tokenizer_(&tokenizer), detokenizer_(tokenizer), matcher_(std::move(stops)), min_tokens_(min_tokens) {}

  struct Piece {
    std::string text;
    std::vector<TextDelta::Token> logprobs;
    bool stopped = false;  // a stop string was completed: nothing may be pushed any more
    [[nodiscard]] bool empty() const { return text.empty() && logprobs.empty(); }
  };

  /// The reply's text continues `prompt`: a space that begins it stays, a character that the prompt left open is
  /// completed.
  void follow(std::span<const text::TokenId> prompt);
  /// The same, and the prompt's text is the first of this choice, special tokens by their own text (but for a BOS in
  /// front). With `logprobs`, those of the tokens from the second on.
  [[nodiscard]] Piece echo(std::span<const text::TokenId> prompt,
                           const std::optional<std::vector<sampling::Logprobs>>& logprobs);

  /// Stop strings aren't looked for in the text of the first min_tokens - 1 tokens.
  [[nodiscard]] Piece push(text::TokenId token, const std::optional<sampling::Logprobs>& logprobs);
  /// The choice ended otherwise: what was held back as the beginning of a stop. An unfinished character is dropped.
  [[nodiscard]] Piece finish();

 private:
  /// A token whose text is known but not all shown; offsets into the choice's text.
  struct Listed {
    std::size_t begin = 0;
    std::size_t end = 0;
    TextDelta::Token token;
  };

  void list(text::TokenId token, std::string bytes, std::size_t new_text, const sampling::Logprobs* logprobs,
            bool wanted);
  [[nodiscard]] Piece show(std::string text, bool last, bool stopped);
  [[nodiscard]] TokenLogprob scored(text::TokenId token, float logprob) const;

  const text::Tokenizer* tokenizer_;
  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  std::int64_t min_tokens_;
  std::int64_t tokens_ = 0;
  bool first_ = true;           // no text precedes the next token
  std::size_t text_ = 0;        // bytes of whole characters so far
  std::size_t tokens_end_ = 0;  // the same with the bytes of an unfinished one
  std::size_t shown_ = 0;
  std::deque<Listed> listed_;
};

}  // namespace quern::engine
