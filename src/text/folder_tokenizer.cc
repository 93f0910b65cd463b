// The tokenizer of a model folder: tokenizer.json, and the configuration files beside it.
#include <filesystem>
#include <utility>

#include "quern/formats/hf_config.h"
#include "quern/text/bridge_tokenizer.h"
#include "quern/text/text_file.h"
#include "quern_bridge.h"

namespace quern::text {
namespace {

Result<formats::TokenizerConfig> read_tokenizer_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer_config.json";
  QUERN_ASSIGN(const std::optional<std::string> json, read_text_file(path));
  if (!json) return formats::TokenizerConfig();
  return formats::parse_tokenizer_config(*json, path.string());
}

// generation_config.json's; where there is none, config.json's.
Result<std::set<TokenId>> read_eos_ids(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "generation_config.json";
  QUERN_ASSIGN(const std::optional<std::string> json, read_text_file(path));
  if (json) {
    QUERN_ASSIGN(const formats::GenerationConfig config, formats::parse_generation_config(*json, path.string()));
    return std::set<TokenId>(config.eos_token_ids.begin(), config.eos_token_ids.end());
  }
  const std::filesystem::path model_path = folder / "config.json";
  QUERN_ASSIGN(const std::optional<std::string> model_json, read_text_file(model_path));
  if (!model_json) return std::set<TokenId>();
  // The same field in the same forms.
  QUERN_ASSIGN(const formats::GenerationConfig config,
               formats::parse_generation_config(*model_json, model_path.string()));
  return std::set<TokenId>(config.eos_token_ids.begin(), config.eos_token_ids.end());
}

Result<bridge::TokenizerPointer> parse_json(std::string_view json, std::string_view name) {
  quern_tokenizer* made = nullptr;
  QUERN_TRY(bridge::call(ErrorCode::kInvalidFile, name, [&](quern_buffer* error) {
    return quern_tokenizer_from_json(bridge::bytes(json), &made, error);
  }));
  return bridge::TokenizerPointer(made);
}

std::unique_ptr<Tokenizer> make(bridge::TokenizerPointer tokenizer, const formats::TokenizerConfig& config,
                                std::set<TokenId> eos) {
  const quern_tokenizer* const made = tokenizer.get();
  BridgeTokenizer::Settings settings;
  settings.eos = std::move(eos);
  if (config.eos_token) {
    if (const auto id = find_token(made, *config.eos_token)) settings.eos.insert(*id);
  }
  if (config.bos_token) settings.bos = find_token(made, *config.bos_token);
  const TokenId prefix = quern_tokenizer_prefix_id(made);
  if (prefix >= 0 && !settings.bos) settings.bos = prefix;
  settings.add_bos = config.add_bos_token.value_or(prefix >= 0);
  return std::make_unique<BridgeTokenizer>(std::move(tokenizer), std::move(settings));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_json(std::string_view json, std::string_view name) {
  QUERN_ASSIGN(bridge::TokenizerPointer tokenizer, parse_json(json, name));
  return make(std::move(tokenizer), {}, {});
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  QUERN_ASSIGN(const std::optional<std::string> json, read_text_file(path));
  if (!json) return fail(ErrorCode::kIo, "{}: there is no such file", path.string());
  QUERN_ASSIGN(bridge::TokenizerPointer tokenizer, parse_json(*json, path.string()));
  QUERN_ASSIGN(const formats::TokenizerConfig config, read_tokenizer_config(folder));
  QUERN_ASSIGN(std::set<TokenId> eos, read_eos_ids(folder));
  return make(std::move(tokenizer), config, std::move(eos));
}

}  // namespace quern::text
