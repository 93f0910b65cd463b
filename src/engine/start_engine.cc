// start_engine: tokenizer, template, weights and pages from what the options name.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "quern/base/log.h"
#include "quern/engine/parts.h"
#include "quern/execution/resident_model.h"
#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/model/loader.h"
#include "quern/os/file.h"

namespace quern::engine {
namespace {

namespace fs = std::filesystem;

/// What lies beside the weights.
struct TextParts {
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::optional<std::string> chat_template;
  std::string bos;  // texts that the template sees
  std::string eos;
  std::map<std::string, std::string> others;
  formats::GenerationConfig generation;
};

constexpr std::size_t kConfigLimitBytes = 16 << 20;

std::string text_of(const text::Tokenizer& tokenizer, std::optional<text::TokenId> id) {
  return id ? tokenizer.token_text(*id).value_or("") : std::string();
}

/// A model that doesn't say which of its end-of-sequence tokens is *the* one: the lowest.
std::string any_eos(const text::Tokenizer& tokenizer) {
  const auto eos = tokenizer.eos_set();
  return eos.empty() ? std::string() : text_of(tokenizer, eos.front());
}

/// Parses `folder`/`name` when it is there.
template <class Parse>
auto read_config(const fs::path& folder, const char* name, Parse parse) -> decltype(parse("", "")) {
  const fs::path file = folder / name;
  if (std::error_code error; !fs::exists(file, error)) return {};
  QUERN_ASSIGN(const std::string json, os::read_file(file, kConfigLimitBytes));
  return parse(json, file.string());
}

Result<TextParts> text_from_folder(const fs::path& folder) {
  TextParts parts;
  QUERN_ASSIGN(parts.tokenizer, text::Tokenizer::from_folder(folder));
  QUERN_ASSIGN(parts.chat_template, text::find_chat_template(folder));
  QUERN_ASSIGN(parts.generation, read_config(folder, "generation_config.json", formats::parse_generation_config));
  QUERN_ASSIGN(const formats::TokenizerConfig config,
               read_config(folder, "tokenizer_config.json", formats::parse_tokenizer_config));
  parts.bos = config.bos_token.value_or(text_of(*parts.tokenizer, parts.tokenizer->bos()));
  parts.eos = config.eos_token.value_or(any_eos(*parts.tokenizer));
  if (config.pad_token) parts.others["pad_token"] = *config.pad_token;
  if (config.unk_token) parts.others["unk_token"] = *config.unk_token;
  return parts;
}

Result<TextParts> text_from_gguf(const fs::path& path) {
  TextParts parts;
  QUERN_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
  QUERN_ASSIGN(parts.tokenizer, text::Tokenizer::from_gguf(file));
  QUERN_ASSIGN(parts.chat_template, text::find_chat_template(file));
  QUERN_ASSIGN(const std::optional<std::int64_t> eos, file.integer("tokenizer.ggml.eos_token_id"));
  parts.bos = text_of(*parts.tokenizer, parts.tokenizer->bos());
  parts.eos = eos ? text_of(*parts.tokenizer, static_cast<text::TokenId>(*eos)) : any_eos(*parts.tokenizer);
  return parts;
}

Result<TextParts> load_text(const EngineOptions& options) {
  fs::path path = options.model;
  if (model::is_synthetic(options.model)) {
    if (options.tokenizer.empty()) {
      return std::unexpected(Error{ErrorCode::kInvalidRequest,
                                   fmt::format("{} has no tokenizer of its own: name a model that has", options.model),
                                   "tokenizer"});
    }
    path = options.tokenizer;
  }
  std::error_code error;
  if (fs::is_directory(path, error)) return text_from_folder(path);
  return text_from_gguf(path);
}

sampling::SamplingParams model_defaults(const formats::GenerationConfig& config) {
  sampling::SamplingParams defaults;
  const auto set = [](float& field, const std::optional<double>& value) {
    if (value) field = static_cast<float>(*value);
  };
  set(defaults.temperature, config.temperature);
  set(defaults.top_p, config.top_p);
  set(defaults.min_p, config.min_p);
  set(defaults.repetition_penalty, config.repetition_penalty);
  if (config.top_k) defaults.top_k = *config.top_k;
  return defaults;
}

}  // namespace

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options, const std::function<void(double)>& progress,
                                             const CancellationToken& cancellation) {
  if (options.queue_limit == 0) {
    return std::unexpected(Error{ErrorCode::kInvalidRequest, "queue_limit must be 1 or more", "queue_limit"});
  }
  QUERN_ASSIGN(TextParts text, load_text(options));
  EngineParts parts;
  parts.tokenizer = std::move(text.tokenizer);
  if (const auto& source = options.chat_template ? options.chat_template : text.chat_template) {
    QUERN_ASSIGN(parts.chat_template, text::ChatTemplate::parse(*source, text.bos, text.eos, text.others));
  }
  sampling::SamplingParams defaults = model_defaults(text.generation);
  if (options.change_defaults) options.change_defaults(defaults);
  QUERN_TRY(sampling::check_params(defaults, parts.tokenizer->vocab_size()));

  QUERN_ASSIGN(execution::ResidentModel resident, execution::load_resident_model({.model = options.model,
                                                                                  .isa = options.isa,
                                                                                  .exact = options.exact,
                                                                                  .threads = options.threads,
                                                                                  .context = options.context,
                                                                                  .kv_bytes = options.kv_bytes},
                                                                                 progress, cancellation));
  const model::ModelConfig& config = resident.runner->config();
  if (resident.plan.context < options.context.value_or(config.context)) {
    log_warning("the context is {} tokens and not {}: the KV budget is {} bytes", resident.plan.context,
                options.context.value_or(config.context), resident.plan.budget_bytes);
  }
  parts.info = {.id = options.model_id,
                .path = options.model,
                .architecture = config.architecture,
                .context = resident.plan.context,
                .model_context = config.context,
                .weight_bytes = resident.weight_bytes,
                .kv_budget_bytes = resident.plan.budget_bytes,
                .device = resident.device,
                .threads = resident.threads,
                .has_chat_template = parts.chat_template != nullptr,
                .defaults = std::move(defaults)};
  parts.runner = std::move(resident.runner);
  parts.clock = std::make_shared<SystemClock>();
  parts.queue_limit = options.queue_limit;
  return make_engine(std::move(parts));
}

}  // namespace quern::engine
