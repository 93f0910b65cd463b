// The shared request fields: one line each, with its range.
#include "quern/wire/internal/generation_fields.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

namespace quern::wire {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();

void read_sampling(Fields& fields, sampling::SamplingParams& out) {
  fields.number("temperature", 0, kMaxFloat, out.temperature);
  fields.integer("top_k", -1, kMaxInt32, out.top_k);
  if (out.top_k == -1) out.top_k = 0;  // another way to say all
  fields.number("top_p", 0, 1, out.top_p);
  fields.number("min_p", 0, 1, out.min_p);
  fields.number("xtc_probability", 0, 1, out.xtc_probability);
  fields.number("xtc_threshold", 0, 0.5, out.xtc_threshold);
  fields.number("repetition_penalty", 0, kMaxFloat, out.repetition_penalty);
  if (!(out.repetition_penalty > 0)) {
    if (const Json* value = fields.find("repetition_penalty")) {
      fields.refuse("repetition_penalty", "a number above 0", *value);
    }
  }
  fields.integer("repetition_context_size", 0, kMaxInt32, out.repetition_context);
  fields.number("presence_penalty", -2, 2, out.presence_penalty);
  fields.integer("presence_context_size", 0, kMaxInt32, out.presence_context);
  fields.number("frequency_penalty", -2, 2, out.frequency_penalty);
  fields.integer("frequency_context_size", 0, kMaxInt32, out.frequency_context);
}

void read_logit_bias(Fields& fields, sampling::SamplingParams& out) {
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMaxLogitBiases) {
    return fields.report({ErrorCode::kInvalidRequest,
                          fmt::format("'logit_bias': {} entries, at most {}", biases->size(), kMaxLogitBiases),
                          "logit_bias"});
  }
  out.logit_bias.clear();
  Fields entries(*biases, "logit_bias.");
  for (const auto& [name, value] : biases->items()) {
    std::int32_t id = -1;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (problem != std::errc() || end != name.data() + name.size() || id < 0) {
      return fields.report({ErrorCode::kInvalidRequest, "'logit_bias': expected token ids as keys", "logit_bias"});
    }
    if (value.is_null()) entries.refuse(name, "a number from -100 to 100", value);
    float bias = 0;
    entries.number(name, -100, 100, bias);
    out.logit_bias.emplace_back(id, bias);
  }
  if (auto checked = entries.check(); !checked) fields.report(std::move(checked).error());
}

void read_stops(Fields& fields, std::vector<std::string>& out) {
  const Json* value = fields.find("stop");
  if (value == nullptr) return;
  const auto add = [&](const Json& stop) {
    if (!stop.is_string()) return fields.refuse("stop", "a string or an array of strings", stop);
    const auto& text = stop.get_ref<const std::string&>();
    if (text.size() > kMaxStopBytes) {
      return fields.report({ErrorCode::kInvalidRequest,
                            fmt::format("'stop': a string of {} bytes, at most {}", text.size(), kMaxStopBytes),
                            "stop"});
    }
    if (!text.empty()) out.push_back(text);
  };
  if (!value->is_array()) return add(*value);
  if (value->size() > kMaxStops) {
    return fields.report(
        {ErrorCode::kInvalidRequest, fmt::format("'stop': {} strings, at most {}", value->size(), kMaxStops), "stop"});
  }
  for (const Json& stop : *value) add(stop);
}

void refuse_constraints(Fields& fields) {
  for (const std::string_view name :
       {"guided_regex", "guided_choice", "guided_grammar", "guided_json", "guided_json_object", "structured_outputs"}) {
    if (fields.find(name) != nullptr) fields.unsupported(name, "constrained decoding");
  }
  if (const Json* format = fields.object("response_format")) {
    const auto type = format->find("type");
    const std::string_view kind =
        type != format->end() && type->is_string() ? std::string_view(type->get_ref<const std::string&>()) : "";
    if (kind == "json_object" || kind == "json_schema") {
      fields.unsupported("response_format", "constrained decoding");
    } else if (kind != "text") {
      fields.refuse("response_format", "a type of text, json_object or json_schema", *format);
    }
  }
}

}  // namespace

void read_generation(Fields& fields, const sampling::SamplingParams& defaults, std::int64_t min_max_tokens,
                     GenerationFields& out) {
  out.sampling = defaults;
  read_sampling(fields, out.sampling);
  read_logit_bias(fields, out.sampling);
  fields.seed("seed", out.seed);
  fields.integer("max_tokens", min_max_tokens, kMaxInt64, out.max_tokens);
  fields.integer("max_completion_tokens", min_max_tokens, kMaxInt64, out.max_tokens);  // the latter wins
  fields.integer("min_tokens", 0, out.max_tokens.value_or(kMaxInt64), out.min_tokens);
  fields.boolean("ignore_eos", out.ignore_eos);
  read_stops(fields, out.stops);
  fields.integer("n", 1, kMaxChoices, out.n);

  // Hints for a prefix cache: nothing depends on them.
  std::string hint;
  for (const std::string_view name : {"session_id", "prompt_cache_key", "cache_salt"}) fields.string(name, hint);
  std::string adapter;
  fields.string("adapter", adapter);
  if (!adapter.empty()) fields.unsupported("adapter", "an adapter");
  refuse_constraints(fields);
}

void read_reply(Fields& fields, ReplyFields& out) {
  fields.string("model", out.model);
  fields.boolean("stream", out.stream);
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options.");
    inner.boolean("include_usage", out.include_usage);
    if (auto checked = inner.check(); !checked) fields.report(std::move(checked).error());
  }
}

Result<Json> parse_body(std::string_view body) {
  QUERN_ASSIGN(Json document, parse_json(body));
  if (!document.is_object()) {
    return fail(ErrorCode::kInvalidRequest, "the body: expected a JSON object, got {}", describe(document));
  }
  return document;
}

}  // namespace quern::wire
