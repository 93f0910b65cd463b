// Offsets tie tokens to text: a token is listed once all its text is shown.
#include "quern/engine/choice_text.h"

#include <algorithm>
#include <utility>

namespace quern::engine {

void ChoiceText::follow(std::span<const text::TokenId> prompt) {
  // An unfinished character has three bytes at most, so the last tokens tell; what they give was the prompt's.
  constexpr std::size_t kTail = 4;
  for (const text::TokenId token : prompt.last(std::min(kTail, prompt.size()))) (void)detokenizer_.push(token);
  first_ = std::ranges::all_of(prompt, [&](text::TokenId token) { return tokenizer_->is_special(token); });
}

ChoiceText::Piece ChoiceText::echo(std::span<const text::TokenId> prompt,
                                   const std::optional<std::vector<sampling::Logprobs>>& logprobs) {
  std::string text;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const text::TokenId token = prompt[i];
    std::string bytes;
    std::string piece = detokenizer_.push(token);
    if (!tokenizer_->is_special(token)) {
      bytes = tokenizer_->token_bytes(token, std::exchange(first_, false));
    } else if (i > 0 || tokenizer_->bos() != token) {
      bytes = tokenizer_->token_text(token).value_or("");
      piece += bytes;
    }
    list(token, std::move(bytes), piece.size(), logprobs && i > 0 ? &(*logprobs)[i - 1] : nullptr,
         logprobs.has_value());
    text += piece;
  }
  return show(std::move(text), false, false);
}

ChoiceText::Piece ChoiceText::push(text::TokenId token, const std::optional<sampling::Logprobs>& logprobs) {
  std::string text = detokenizer_.push(token);
  std::string bytes = tokenizer_->token_bytes(token, first_);
  if (!tokenizer_->is_special(token)) first_ = false;
  list(token, std::move(bytes), text.size(), logprobs ? &*logprobs : nullptr, logprobs.has_value());
  if (++tokens_ < min_tokens_) return show(std::move(text), false, false);
  text::StopMatcher::Step step = matcher_.push(text);
  return show(std::move(step.text), step.stopped, step.stopped);
}

ChoiceText::Piece ChoiceText::finish() {
  return show(matcher_.finish(), true, false);
}

void ChoiceText::list(text::TokenId token, std::string bytes, std::size_t new_text, const sampling::Logprobs* logprobs,
                      bool wanted) {
  const std::size_t begin = tokens_end_;
  text_ += new_text;
  // Where no character is open, text and tokens end at the same place; invalid bytes, shown as U+FFFD, are made up for.
  tokens_end_ = detokenizer_.holds_partial() ? tokens_end_ + bytes.size() : text_;
  if (!wanted) return;
  Listed listed{begin, std::max(begin, tokens_end_), {}};
  listed.token.token = {token, std::move(bytes), logprobs != nullptr ? logprobs->logprob : 0.0F};
  listed.token.has_logprob = logprobs != nullptr;
  if (logprobs != nullptr) {
    for (const sampling::TokenScore& score : logprobs->top) listed.token.top.push_back(scored(score.id, score.logprob));
  }
  listed_.push_back(std::move(listed));
}

TokenLogprob ChoiceText::scored(text::TokenId token, float logprob) const {
  return {token, tokenizer_->token_bytes(token, false), logprob};
}

ChoiceText::Piece ChoiceText::show(std::string text, bool last, bool stopped) {
  shown_ += text.size();
  Piece piece{std::move(text), {}, stopped};
  while (!listed_.empty() && listed_.front().end <= shown_) {
    piece.logprobs.push_back(std::move(listed_.front().token));
    listed_.pop_front();
  }
  if (last && !listed_.empty() && listed_.front().begin < shown_) {
    Listed& cut = listed_.front();
    cut.token.token.bytes.resize(std::min(cut.token.token.bytes.size(), shown_ - cut.begin));
    piece.logprobs.push_back(std::move(cut.token));
  }
  return piece;
}

}  // namespace quern::engine
