// Tokenizer: text to token ids and back, from tokenizer.json or GGUF metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/formats/gguf.h"

namespace quern::text {

using TokenId = std::int32_t;

/// Immutable and thread-safe once made.
class Tokenizer {
 public:
  /// A model folder with tokenizer.json (tokenizer_config.json and generation_config.json beside it are read too).
  /// kIo when a file can't be read, kInvalidFile names it and what is wrong, kUnsupportedFormat a kind that isn't
  /// known.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> from_folder(const std::filesystem::path& folder);
  /// tokenizer.json alone, in memory (fuzzing, tests): BOS as its post-processor says. `name` stands in messages.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> from_json(std::string_view json, std::string_view name);
  /// GGUF metadata. kUnsupportedFormat names a tokenizer.ggml.model or .pre that isn't known.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> from_gguf(const formats::GgufFile& file);
  virtual ~Tokenizer() = default;

  enum class Special : std::uint8_t {
    kParse,  // special-token text becomes its token
    kPlain,  // it is text like any other
  };
  /// Token ids of UTF-8 text. Adds nothing: BOS is add_bos()'s business. kInvalidRequest for invalid UTF-8.
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode(std::string_view text, Special special) const = 0;
  /// encode(), with BOS in front where the model's configuration wants one and the text's own first token isn't it.
  [[nodiscard]] Result<std::vector<TokenId>> encode_prompt(std::string_view text, Special special) const;

  /// The bytes that a token stands for in a reply (byte-level and byte-fallback tokens undone; may be part of a
  /// character). Special tokens give nothing. `first` = nothing precedes it, so that a SentencePiece prefix space is
  /// dropped.
  [[nodiscard]] virtual std::string token_bytes(TokenId id, bool first) const = 0;
  /// The vocabulary's own text of a token, special ones too; nothing for an id outside.
  [[nodiscard]] virtual std::optional<std::string> token_text(TokenId id) const = 0;
  [[nodiscard]] virtual std::optional<TokenId> token_id(std::string_view text) const = 0;
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;
  /// Texts of all special tokens, longest first.
  [[nodiscard]] virtual std::span<const std::string> special_texts() const = 0;
  [[nodiscard]] virtual std::int32_t vocab_size() const = 0;

  /// BOS is put in front of a prompt (rule 9: as the tokenizer's configuration says).
  [[nodiscard]] virtual bool add_bos() const = 0;
  [[nodiscard]] virtual std::optional<TokenId> bos() const = 0;
  /// End-of-sequence set: tokenizer's, generation_config.json's, the template's end-of-turn.
  [[nodiscard]] virtual std::span<const TokenId> eos_set() const = 0;

  /// BOS rule for tokens that are a whole prompt: none or one as the model's configuration says, never two.
  void put_bos(std::vector<TokenId>& ids) const;

  /// Text of the whole list, as Hugging Face's decode with skip_special_tokens: what isn't UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;
};

}  // namespace quern::text
