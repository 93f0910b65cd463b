// The tokenizer of the bridge, and what a model's files say beside its vocabulary.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/text/bridge.h"
#include "quern/text/tokenizer.h"

namespace quern::text {

/// Immutable and thread-safe once made.
class BridgeTokenizer final : public Tokenizer {
 public:
  struct Settings {
    bool add_bos = false;
    std::optional<TokenId> bos;
    std::set<TokenId> eos;  // the template's end-of-turn tokens are added to these
  };
  BridgeTokenizer(bridge::TokenizerPointer tokenizer, Settings settings);

  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view text, Special special) const override;
  [[nodiscard]] std::string token_bytes(TokenId id, bool first) const override;
  [[nodiscard]] std::optional<std::string> token_text(TokenId id) const override;
  [[nodiscard]] std::optional<TokenId> token_id(std::string_view text) const override;
  [[nodiscard]] bool is_special(TokenId id) const override;
  [[nodiscard]] std::span<const std::string> special_texts() const override { return special_texts_; }
  [[nodiscard]] std::int32_t vocab_size() const override;
  [[nodiscard]] bool add_bos() const override { return settings_.add_bos; }
  [[nodiscard]] std::optional<TokenId> bos() const override { return settings_.bos; }
  [[nodiscard]] std::span<const TokenId> eos_set() const override { return eos_; }

  /// Alive as long as this is.
  [[nodiscard]] const quern_tokenizer* handle() const { return tokenizer_.get(); }

 private:
  bridge::TokenizerPointer tokenizer_;
  Settings settings_;
  std::vector<TokenId> eos_;
  std::vector<std::string> special_texts_;
};

/// The id of a token's own text before a BridgeTokenizer is made of it.
[[nodiscard]] std::optional<TokenId> find_token(const quern_tokenizer* tokenizer, std::string_view text);

}  // namespace quern::text
