// A tokenizer over a given list of pieces, for tests that need to know where every token ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/text/tokenizer.h"

namespace quern::tests {

/// Token i is pieces[i], any bytes; after them come "<bos>" and "<eos>", which are special. Text is encoded by the
/// longest piece that fits.
class PieceTokenizer final : public text::Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces, bool add_bos = false)
      : pieces_(std::move(pieces)), add_bos_(add_bos) {
    bos_ = static_cast<text::TokenId>(pieces_.size());
    eos_ = {bos_ + 1};
    pieces_.emplace_back("<bos>");
    pieces_.emplace_back("<eos>");
  }

  /// The 256 bytes as pieces, and those given: ids of the latter begin at 256.
  [[nodiscard]] static std::vector<std::string> bytes_and(std::vector<std::string> more) {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    pieces.insert(pieces.end(), more.begin(), more.end());
    return pieces;
  }

  [[nodiscard]] Result<std::vector<text::TokenId>> encode(std::string_view text, Special special) const override {
    std::vector<text::TokenId> ids;
    while (!text.empty()) {
      std::optional<text::TokenId> best;
      for (std::size_t id = 0; id < pieces_.size(); ++id) {
        if (is_special(static_cast<text::TokenId>(id)) && special == Special::kPlain) continue;
        if (text.starts_with(pieces_[id]) && (!best || pieces_[id].size() > piece(*best).size())) {
          best = static_cast<text::TokenId>(id);
        }
      }
      if (!best) return fail(ErrorCode::kInvalidRequest, "no piece for the text");
      ids.push_back(*best);
      text.remove_prefix(piece(*best).size());
    }
    return ids;
  }
  [[nodiscard]] std::string token_bytes(text::TokenId id, bool) const override {
    return is_special(id) || id < 0 || id >= vocab_size() ? std::string() : piece(id);
  }
  [[nodiscard]] std::optional<std::string> token_text(text::TokenId id) const override {
    if (id < 0 || id >= vocab_size()) return std::nullopt;
    return piece(id);
  }
  [[nodiscard]] std::optional<text::TokenId> token_id(std::string_view text) const override {
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      if (pieces_[id] == text) return static_cast<text::TokenId>(id);
    }
    return std::nullopt;
  }
  [[nodiscard]] bool is_special(text::TokenId id) const override { return id == bos_ || id == eos_.front(); }
  [[nodiscard]] std::span<const std::string> special_texts() const override { return std::span(pieces_).last(2); }
  [[nodiscard]] std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  [[nodiscard]] bool add_bos() const override { return add_bos_; }
  [[nodiscard]] std::optional<text::TokenId> bos() const override { return bos_; }
  [[nodiscard]] std::span<const text::TokenId> eos_set() const override { return eos_; }

 private:
  [[nodiscard]] const std::string& piece(text::TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }

  std::vector<std::string> pieces_;
  bool add_bos_;
  text::TokenId bos_;
  std::vector<text::TokenId> eos_;
};

}  // namespace quern::tests
