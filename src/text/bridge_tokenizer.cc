// The tokenizer of the bridge, and what a model's files say beside its vocabulary.
#include "quern/text/bridge_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "quern_bridge.h"

namespace quern::text {
namespace {

// Tokens that end a turn in the templates of the model families, or a text. They count only where they are special.
constexpr std::array<std::string_view, 19> kEndOfTurn = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "<|return|>",
    "<|call|>",
    "<|eot|>",
    "<|user|>",
    "<|end|>",
    "[|endofturn|]",
    "<|role_end|>",
    "<turn|>",
    "<|im_sep_end|>",
    "<EOT>",
};

quern_token look_up(const quern_tokenizer* tokenizer, TokenId id) {
  quern_token token{};
  if (!quern_tokenizer_token(tokenizer, id, &token)) token = {};
  return token;
}

}  // namespace

std::optional<TokenId> find_token(const quern_tokenizer* tokenizer, std::string_view text) {
  const TokenId id = quern_tokenizer_id(tokenizer, bridge::bytes(text));
  if (id < 0) return std::nullopt;
  return id;
}

BridgeTokenizer::BridgeTokenizer(bridge::TokenizerPointer tokenizer, Settings settings)
    : tokenizer_(std::move(tokenizer)), settings_(std::move(settings)) {
  const TokenId size = quern_tokenizer_size(tokenizer_.get());
  for (TokenId id = 0; id < size; ++id) {
    const quern_token token = look_up(tokenizer_.get(), id);
    if (token.special) special_texts_.emplace_back(bridge::view(token.text));
  }
  std::ranges::sort(special_texts_, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });

  std::erase_if(settings_.eos, [&](TokenId id) { return id < 0 || id >= size; });
  // Where a message is one of several in a turn, <|end|> ends the message only.
  const bool has_turns_of_messages = find_token(tokenizer_.get(), "<|return|>").has_value();
  for (const std::string_view text : kEndOfTurn) {
    const std::optional<TokenId> id = find_token(tokenizer_.get(), text);
    if (!id || !is_special(*id) || (has_turns_of_messages && text == "<|end|>")) continue;
    settings_.eos.insert(*id);
  }
  eos_.assign(settings_.eos.begin(), settings_.eos.end());
  if (settings_.bos && (*settings_.bos < 0 || *settings_.bos >= size)) settings_.bos.reset();
  if (!settings_.bos) settings_.add_bos = false;
}

Result<std::vector<TokenId>> BridgeTokenizer::encode(std::string_view text, Special special) const {
  quern_ids ids{};
  QUERN_TRY(bridge::call(ErrorCode::kInvalidRequest, {}, [&](quern_buffer* error) {
    return quern_tokenizer_encode(tokenizer_.get(), bridge::bytes(text), special == Special::kPlain, &ids, error);
  }));
  return bridge::take(ids);
}

std::string BridgeTokenizer::token_bytes(TokenId id, bool first) const {
  const quern_token token = look_up(tokenizer_.get(), id);
  if (token.special) return {};
  return std::string(bridge::view(first ? token.first_bytes : token.bytes));
}

std::optional<std::string> BridgeTokenizer::token_text(TokenId id) const {
  quern_token token{};
  if (!quern_tokenizer_token(tokenizer_.get(), id, &token)) return std::nullopt;
  return std::string(bridge::view(token.text));
}

std::optional<TokenId> BridgeTokenizer::token_id(std::string_view text) const {
  return find_token(tokenizer_.get(), text);
}

bool BridgeTokenizer::is_special(TokenId id) const {
  return look_up(tokenizer_.get(), id).special;
}

std::int32_t BridgeTokenizer::vocab_size() const {
  return quern_tokenizer_size(tokenizer_.get());
}

}  // namespace quern::text
