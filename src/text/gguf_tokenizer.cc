// The tokenizer that GGUF metadata describes.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/text/bridge_tokenizer.h"
#include "quern_bridge.h"

namespace quern::text {
namespace {

using formats::GgufArray;
using formats::GgufFile;

// What tokenizer.ggml.model names, and what holds where the file doesn't say.
struct Model {
  std::string_view name;
  quern_vocabulary_kind kind;
  bool add_bos;
  bool add_space_prefix;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
};
constexpr std::array<Model, 4> kModels = {{
    {"gpt2", QUERN_BYTE_LEVEL_BPE, false, false, {}, {}, {}},
    {"llama", QUERN_SENTENCE_PIECE_BPE, true, true, 1, 2, 0},
    {"t5", QUERN_UNIGRAM, false, true, {}, 1, 2},
    {"bert", QUERN_WORD_PIECE, true, false, 101, 102, 100},
}};

// Byte-level BPE models whose files leave BOS out though the model wants it.
constexpr std::array<std::string_view, 4> kPreWithBos = {"llama-bpe", "llama3", "llama-v3", "tekken"};

Result<const Model*> find_model(const GgufFile& file) {
  QUERN_ASSIGN(const std::optional<std::string_view> name, file.string("tokenizer.ggml.model"));
  if (!name) return fail(ErrorCode::kInvalidFile, "{}: tokenizer.ggml.model is missing", file.name());
  const auto found = std::ranges::find(kModels, *name, &Model::name);
  if (found == kModels.end()) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: tokenizer.ggml.model: '{}' isn't known", file.name(), *name);
  }
  return &*found;
}

Result<std::vector<quern_bytes>> read_texts(const GgufFile& file, std::string_view key) {
  QUERN_ASSIGN(const std::optional<GgufArray> array, file.array(key));
  std::vector<quern_bytes> texts;
  if (!array) return texts;
  QUERN_ASSIGN(const std::vector<std::string_view> strings, array->strings());
  texts.reserve(strings.size());
  for (const std::string_view text : strings) texts.push_back(bridge::bytes(text));
  return texts;
}

Result<std::vector<std::uint8_t>> read_types(const GgufFile& file, std::size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  QUERN_ASSIGN(const std::optional<GgufArray> array, file.array(kKey));
  if (!array) return std::vector<std::uint8_t>(tokens, QUERN_TOKEN_NORMAL);
  QUERN_ASSIGN(const std::vector<std::int64_t> numbers, array->integers());
  if (numbers.size() != tokens) {
    return fail(ErrorCode::kInvalidFile, "{}: {} has {} elements, expected {}", file.name(), kKey, numbers.size(),
                tokens);
  }
  std::vector<std::uint8_t> types;
  types.reserve(tokens);
  for (const std::int64_t number : numbers) {
    if (number < QUERN_TOKEN_NORMAL || number > QUERN_TOKEN_BYTE) {
      return fail(ErrorCode::kInvalidFile, "{}: {} has {}, expected 1 to 6", file.name(), kKey, number);
    }
    types.push_back(static_cast<std::uint8_t>(number));
  }
  return types;
}

Result<std::vector<float>> read_scores(const GgufFile& file, std::size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  QUERN_ASSIGN(const std::optional<GgufArray> array, file.array(kKey));
  if (!array) return std::vector<float>();
  QUERN_ASSIGN(const std::vector<double> numbers, array->numbers());
  if (numbers.size() != tokens) {
    return fail(ErrorCode::kInvalidFile, "{}: {} has {} elements, expected {}", file.name(), kKey, numbers.size(),
                tokens);
  }
  return std::vector<float>(numbers.begin(), numbers.end());
}

Result<std::string_view> read_character_map(const GgufFile& file) {
  QUERN_ASSIGN(const std::optional<GgufArray> array, file.array("tokenizer.ggml.precompiled_charsmap"));
  if (!array) return std::string_view();
  return std::string_view(reinterpret_cast<const char*>(array->bytes.data()), array->bytes.size());
}

Result<std::optional<TokenId>> read_id(const GgufFile& file, std::string_view key, std::size_t tokens) {
  QUERN_ASSIGN(const std::optional<std::int64_t> id, file.integer(key));
  // Writers put -1, or the largest number, where there is no such token.
  if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokens)) return std::optional<TokenId>();
  return std::optional(static_cast<TokenId>(*id));
}

// The ids that the file names, over the model's own.
struct NamedIds {
  std::optional<TokenId> bos;
  std::optional<TokenId> unknown;
  std::set<TokenId> eos;
};

Result<NamedIds> read_named_ids(const GgufFile& file, const Model& model, std::size_t tokens) {
  const auto within = [&](std::optional<TokenId> id) {
    return id && static_cast<std::size_t>(*id) < tokens ? id : std::nullopt;
  };
  NamedIds ids;
  QUERN_ASSIGN(const std::optional<TokenId> bos, read_id(file, "tokenizer.ggml.bos_token_id", tokens));
  ids.bos = bos ? bos : within(model.bos);
  QUERN_ASSIGN(const std::optional<TokenId> unknown, read_id(file, "tokenizer.ggml.unknown_token_id", tokens));
  ids.unknown = unknown ? unknown : within(model.unknown);
  QUERN_ASSIGN(const std::optional<TokenId> eos, read_id(file, "tokenizer.ggml.eos_token_id", tokens));
  if (const auto id = eos ? eos : within(model.eos)) ids.eos.insert(*id);
  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    QUERN_ASSIGN(const std::optional<TokenId> id, read_id(file, key, tokens));
    if (id) ids.eos.insert(*id);
  }
  return ids;
}

// A file without types, or one that calls them normal, still means its own BOS and EOS as control tokens.
void mark_control(std::vector<std::uint8_t>& types, const NamedIds& ids) {
  const auto mark = [&](TokenId id) {
    std::uint8_t& type = types[static_cast<std::size_t>(id)];
    if (type == QUERN_TOKEN_NORMAL) type = QUERN_TOKEN_CONTROL;
  };
  if (ids.bos) mark(*ids.bos);
  std::ranges::for_each(ids.eos, mark);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const GgufFile& file) {
  QUERN_ASSIGN(const Model* const model, find_model(file));
  QUERN_ASSIGN(const std::vector<quern_bytes> tokens, read_texts(file, "tokenizer.ggml.tokens"));
  if (tokens.empty()) return fail(ErrorCode::kInvalidFile, "{}: tokenizer.ggml.tokens is missing", file.name());
  QUERN_ASSIGN(const std::vector<quern_bytes> merges, read_texts(file, "tokenizer.ggml.merges"));
  QUERN_ASSIGN(std::vector<std::uint8_t> types, read_types(file, tokens.size()));
  QUERN_ASSIGN(const std::vector<float> scores, read_scores(file, tokens.size()));
  QUERN_ASSIGN(const std::string_view character_map, read_character_map(file));
  QUERN_ASSIGN(const std::optional<std::string_view> pre, file.string("tokenizer.ggml.pre"));
  QUERN_ASSIGN(const std::optional<bool> add_space_prefix, file.boolean("tokenizer.ggml.add_space_prefix"));
  QUERN_ASSIGN(const std::optional<bool> remove_spaces, file.boolean("tokenizer.ggml.remove_extra_whitespaces"));
  QUERN_ASSIGN(const std::optional<bool> add_bos, file.boolean("tokenizer.ggml.add_bos_token"));
  QUERN_ASSIGN(NamedIds ids, read_named_ids(file, *model, tokens.size()));
  mark_control(types, ids);

  const quern_vocabulary vocabulary{
      .kind = model->kind,
      .tokens = tokens.data(),
      .types = types.data(),
      .scores = scores.empty() ? nullptr : scores.data(),
      .token_count = tokens.size(),
      .merges = merges.data(),
      .merge_count = merges.size(),
      .pre = bridge::bytes(pre.value_or("default")),
      .add_space_prefix = add_space_prefix.value_or(model->add_space_prefix),
      .remove_extra_spaces = remove_spaces.value_or(model->kind == QUERN_UNIGRAM),
      .character_map = bridge::bytes(character_map),
      .unknown_id = ids.unknown.value_or(-1),
  };
  quern_tokenizer* made = nullptr;
  QUERN_TRY(bridge::call(ErrorCode::kInvalidFile, file.name(), [&](quern_buffer* error) {
    return quern_tokenizer_from_vocabulary(&vocabulary, &made, error);
  }));
  const bool pre_wants_bos = std::ranges::find(kPreWithBos, pre.value_or("")) != kPreWithBos.end();
  BridgeTokenizer::Settings settings{
      .add_bos = add_bos.value_or(model->add_bos || (model->kind == QUERN_BYTE_LEVEL_BPE && pre_wants_bos)),
      .bos = ids.bos,
      .eos = std::move(ids.eos),
  };
  return std::make_unique<BridgeTokenizer>(bridge::TokenizerPointer(made), std::move(settings));
}

}  // namespace quern::text
