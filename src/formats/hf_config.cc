// Hugging Face's JSON files: typed look-ups over the parsed text.
#include "quern/formats/hf_config.h"

#include <limits>

#include "quern/formats/json_value.h"
#include "quern/formats/printable.h"
#include "quern/os/file.h"

namespace quern::formats {
namespace {

constexpr JsonLimits kLimits{};
constexpr std::size_t kMaxList = 65'536;
constexpr double kLargest = std::numeric_limits<double>::max();

// Overlays what `field` gives.
Result<void> read_rope(const JsonField& field, HfRopeScaling& rope) {
  QUERN_ASSIGN(const auto members, field.members());
  for (const auto& [key, value] : members) {
    if (value.is<std::int64_t>() || value.is<double>()) {
      QUERN_ASSIGN(rope.numbers[std::string(key)], value.number(-kLargest, kLargest));
    } else if ((key == "short_factor" || key == "long_factor") && !value.is<std::nullptr_t>()) {
      QUERN_ASSIGN(const auto factors, value.list(kMaxList));
      auto& out = key == "short_factor" ? rope.short_factor : rope.long_factor;
      out.clear();
      for (const JsonField& factor : factors) {
        QUERN_ASSIGN(out.emplace_back(), factor.number(-kLargest, kLargest));
      }
    } else if (value.is<JsonValue::Object>()) {
      return value.error(ErrorCode::kUnsupportedFormat, "rotary parameters for a kind of layer aren't supported");
    }
  }
  for (const std::string_view key : {"type", "rope_type"}) {  // the newer name last: it wins
    QUERN_ASSIGN(const auto type, field.find(key));
    if (!type) continue;
    QUERN_ASSIGN(rope.type, type->string());
  }
  return {};
}

Result<std::optional<HfRopeScaling>> read_rope_scaling(const JsonField& root) {
  std::optional<HfRopeScaling> rope;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    QUERN_ASSIGN(const auto field, root.find(key));
    if (!field) continue;
    if (!rope) rope.emplace();
    QUERN_TRY(read_rope(*field, *rope));
  }
  return rope;
}

Result<HfQuantization::Module> read_quantized(const JsonField& field) {
  HfQuantization::Module module{.bits = 0, .group = 0, .mode = "affine"};
  QUERN_ASSIGN(const auto mode, field.find("mode"));
  if (mode) {
    QUERN_ASSIGN(module.mode, mode->string());
    if (module.mode != "affine" && module.mode != "mxfp4") {
      return mode->error(ErrorCode::kUnsupportedFormat, fmt::format("mode {} isn't supported", printable(module.mode)));
    }
  }
  QUERN_ASSIGN(const auto bits, field.at("bits"));
  QUERN_ASSIGN(module.bits, bits.integer(2, 8));
  QUERN_ASSIGN(const auto group, field.at("group_size"));
  QUERN_ASSIGN(module.group, group.integer(16, 128));
  if (module.bits == 7) return bits.invalid("expected 2, 3, 4, 5, 6 or 8, found 7");
  if ((module.group & (module.group - 1)) != 0) {
    return group.invalid(fmt::format("expected 16, 32, 64 or 128, found {}", module.group));
  }
  if (module.mode == "mxfp4" && (module.bits != 4 || module.group != 32)) {
    return field.invalid(fmt::format("mxfp4 has 4 bits and groups of 32, found {} and {}", module.bits, module.group));
  }
  return module;
}

Result<std::optional<HfQuantization>> read_quantization(const JsonField& root) {
  QUERN_ASSIGN(auto section, root.find("quantization"));
  if (!section) {
    QUERN_ASSIGN(section, root.find("quantization_config"));
    if (!section) return std::nullopt;
    QUERN_ASSIGN(const auto method, section->find("quant_method"));
    if (method) {
      QUERN_ASSIGN(const auto name, method->string());
      return method->error(ErrorCode::kUnsupportedFormat, fmt::format("method {} isn't supported", printable(name)));
    }
  }
  HfQuantization quantization;
  QUERN_ASSIGN(quantization.defaults, read_quantized(*section));
  QUERN_ASSIGN(const auto members, section->members());
  for (const auto& [module, field] : members) {
    if (field.is<JsonValue::Object>()) {
      QUERN_ASSIGN(quantization.modules[std::string(module)], read_quantized(field));
    } else if (field.is<bool>()) {
      QUERN_ASSIGN(const auto quantized, field.boolean());
      quantization.modules[std::string(module)] = quantized ? quantization.defaults : HfQuantization::Module{};
    }
  }
  return quantization;
}

// An optional member of a root, read by `read(field)`.
template <class Read>
auto optional_member(const JsonField& root, std::string_view key, Read read)
    -> Result<std::optional<std::remove_cvref_t<decltype(read(root).value())>>> {
  QUERN_ASSIGN(const auto field, root.find(key));
  if (!field) return std::nullopt;
  QUERN_ASSIGN(auto value, read(*field));
  return value;
}

Result<std::optional<double>> optional_number(const JsonField& root, std::string_view key, double low, double high) {
  return optional_member(root, key, [&](const JsonField& field) { return field.number(low, high); });
}

Result<std::optional<std::int32_t>> optional_count(const JsonField& root, std::string_view key) {
  return optional_member(root, key, [&](const JsonField& field) -> Result<std::int32_t> {
    QUERN_ASSIGN(const auto value, field.integer(0, INT32_MAX));
    return static_cast<std::int32_t>(value);
  });
}

Result<std::optional<bool>> optional_boolean(const JsonField& root, std::string_view key) {
  return optional_member(root, key, [](const JsonField& field) { return field.boolean(); });
}

// A token's text: a string, or an object that has it as "content".
Result<std::optional<std::string>> optional_token(const JsonField& root, std::string_view key) {
  return optional_member(root, key, [](const JsonField& field) -> Result<std::string> {
    if (!field.is<JsonValue::Object>()) {
      QUERN_ASSIGN(const auto text, field.string());
      return std::string(text);
    }
    QUERN_ASSIGN(const auto content, field.at("content"));
    QUERN_ASSIGN(const auto text, content.string());
    return std::string(text);
  });
}

Result<void> read_templates(const JsonField& field, std::map<std::string, std::string, std::less<>>& templates) {
  if (!field.is<JsonValue::List>()) {
    QUERN_ASSIGN(const auto text, field.string());
    templates.emplace("default", text);
    return {};
  }
  QUERN_ASSIGN(const auto list, field.list(kMaxList));
  for (const JsonField& entry : list) {
    QUERN_ASSIGN(const auto name_field, entry.at("name"));
    QUERN_ASSIGN(const auto name, name_field.string());
    QUERN_ASSIGN(const auto text_field, entry.at("template"));
    QUERN_ASSIGN(const auto text, text_field.string());
    if (!templates.emplace(name, text).second)
      return name_field.invalid(fmt::format("{} is given twice", printable(name)));
  }
  return {};
}

}  // namespace

Result<HfConfig> HfConfig::parse(std::string_view json, std::string name) {
  HfConfig config;
  config.name_ = std::move(name);
  QUERN_ASSIGN(auto root, parse_json(json, config.name_, kLimits));
  config.root_ = std::make_shared<const JsonValue>(std::move(root));
  const JsonField field(*config.root_, config.name_);
  QUERN_ASSIGN(auto model_type, config.string("model_type"));
  config.model_type_ = std::move(model_type).value_or("");
  QUERN_ASSIGN(const auto architectures, field.find("architectures"));
  if (architectures) {
    QUERN_ASSIGN(const auto names, architectures->list(kMaxList));
    for (const JsonField& one : names) {
      QUERN_ASSIGN(const auto text, one.string());
      config.architectures_.emplace_back(text);
    }
  }
  QUERN_ASSIGN(config.rope_scaling_, read_rope_scaling(field));
  QUERN_ASSIGN(config.quantization_, read_quantization(field));
  return config;
}

Result<HfConfig> HfConfig::open(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  QUERN_ASSIGN(const auto json, os::read_file(path, kLimits.bytes));
  return parse(json, path.string());
}

Result<std::optional<std::int64_t>> HfConfig::integer(std::string_view field, std::int64_t low,
                                                      std::int64_t high) const {
  return optional_member(JsonField(*root_, name_), field, [&](const JsonField& at) { return at.integer(low, high); });
}

Result<std::optional<double>> HfConfig::number(std::string_view field, double low, double high) const {
  return optional_number(JsonField(*root_, name_), field, low, high);
}

Result<std::optional<bool>> HfConfig::boolean(std::string_view field) const {
  return optional_boolean(JsonField(*root_, name_), field);
}

Result<std::optional<std::string>> HfConfig::string(std::string_view field) const {
  return optional_member(JsonField(*root_, name_), field, [](const JsonField& at) -> Result<std::string> {
    QUERN_ASSIGN(const auto text, at.string());
    return std::string(text);
  });
}

Result<std::optional<std::vector<std::int64_t>>> HfConfig::integers(std::string_view field, std::int64_t low,
                                                                    std::int64_t high) const {
  return optional_member(JsonField(*root_, name_), field,
                         [&](const JsonField& at) -> Result<std::vector<std::int64_t>> {
                           QUERN_ASSIGN(const auto list, at.list(kMaxList));
                           std::vector<std::int64_t> values;
                           for (const JsonField& element : list) {
                             QUERN_ASSIGN(values.emplace_back(), element.integer(low, high));
                           }
                           return values;
                         });
}

Result<std::optional<double>> HfConfig::rope_number(std::string_view field, double low, double high) const {
  const JsonField root(*root_, name_);
  QUERN_ASSIGN(const auto parameters, root.find("rope_parameters"));
  if (parameters) {
    QUERN_ASSIGN(const auto inner, optional_number(*parameters, field, low, high));
    if (inner) return *inner;
  }
  return optional_number(root, field, low, high);
}

Result<GenerationConfig> parse_generation_config(std::string_view json, std::string name) {
  QUERN_ASSIGN(const auto value, parse_json(json, name, kLimits));
  const JsonField root(value, name);
  GenerationConfig config;
  QUERN_ASSIGN(const auto eos, root.find("eos_token_id"));
  if (eos) {
    std::vector<JsonField> ids{*eos};
    if (eos->is<JsonValue::List>()) {
      QUERN_ASSIGN(ids, eos->list(kMaxList));
    }
    for (const JsonField& field : ids) {
      QUERN_ASSIGN(const auto id, field.integer(0, INT32_MAX));
      config.eos_token_ids.push_back(static_cast<std::int32_t>(id));
    }
  }
  QUERN_ASSIGN(config.temperature, optional_number(root, "temperature", 0.0, 100.0));
  QUERN_ASSIGN(config.top_p, optional_number(root, "top_p", 0.0, 1.0));
  QUERN_ASSIGN(config.top_k, optional_count(root, "top_k"));
  QUERN_ASSIGN(config.min_p, optional_number(root, "min_p", 0.0, 1.0));
  QUERN_ASSIGN(config.repetition_penalty, optional_number(root, "repetition_penalty", 0.01, 100.0));
  QUERN_ASSIGN(config.max_new_tokens, optional_count(root, "max_new_tokens"));
  return config;
}

Result<TokenizerConfig> parse_tokenizer_config(std::string_view json, std::string name) {
  QUERN_ASSIGN(const auto value, parse_json(json, name, kLimits));
  const JsonField root(value, name);
  TokenizerConfig config;
  QUERN_ASSIGN(config.add_bos_token, optional_boolean(root, "add_bos_token"));
  QUERN_ASSIGN(config.add_eos_token, optional_boolean(root, "add_eos_token"));
  QUERN_ASSIGN(config.bos_token, optional_token(root, "bos_token"));
  QUERN_ASSIGN(config.eos_token, optional_token(root, "eos_token"));
  QUERN_ASSIGN(config.pad_token, optional_token(root, "pad_token"));
  QUERN_ASSIGN(config.unk_token, optional_token(root, "unk_token"));
  QUERN_ASSIGN(const auto templates, root.find("chat_template"));
  if (templates) QUERN_TRY(read_templates(*templates, config.chat_templates));
  return config;
}

}  // namespace quern::formats
