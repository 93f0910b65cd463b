// The two writers: everything in one body, or a frame an event.
#include "quern/wire/replies.h"

#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "quern/base/check.h"
#include "quern/wire/internal/json.h"
#include "quern/wire/internal/logprobs.h"

namespace quern::wire {
namespace {

std::string_view finish_name(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

Json usage_json(const ReplyStats& stats) {
  return {{"prompt_tokens", stats.prompt_tokens},
          {"completion_tokens", stats.completion_tokens},
          {"total_tokens", stats.prompt_tokens + stats.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", stats.cached_tokens}}}};
}

Json timings_json(const ReplyStats& stats) {
  const auto rounded = [](double ms) { return std::round(ms * 1000.0) / 1000.0; };
  return {{"queue_ms", rounded(stats.queue_ms)},
          {"prefill_ms", rounded(stats.prefill_ms)},
          {"decode_ms", rounded(stats.decode_ms)},
          {"cached_tokens", stats.cached_tokens}};
}

Json logprobs_json(const ReplyHeader& header, const std::vector<TokenLogprobs>& tokens, std::int64_t& offset) {
  if (!header.logprobs) return nullptr;
  return header.kind == ReplyKind::kChat ? chat_logprobs(tokens) : completion_logprobs(tokens, offset);
}

/// What body and chunks begin with.
Json envelope(const ReplyHeader& header, bool chunk) {
  const bool chat = header.kind == ReplyKind::kChat;
  return {{"id", (chat ? "chatcmpl-" : "cmpl-") + header.id},
          {"object", !chat   ? "text_completion"
                     : chunk ? "chat.completion.chunk"
                             : "chat.completion"},
          {"created", header.created_s},
          {"model", header.model}};
}

class BodyWriter final : public ReplyWriter {
 public:
  explicit BodyWriter(ReplyHeader header) : header_(std::move(header)), choices_(header_.choices) {}

  std::string open() override { return {}; }

  std::string text(TextPiece&& piece) override {
    Choice& choice = choices_.at(piece.choice);
    choice.text += piece.text;
    std::ranges::move(piece.logprobs, std::back_inserter(choice.logprobs));
    return {};
  }

  std::string finish(std::int32_t choice, FinishReason reason) override {
    choices_.at(choice).reason = reason;
    return {};
  }

  std::string done(const ReplyStats& stats) override {
    Json body = envelope(header_, false);
    Json choices = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i));
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(stats);
    body["timings"] = timings_json(stats);
    return dump(body);
  }

  std::string fail(const Error& error) override { return error_body(error); }

 private:
  struct Choice {
    std::string text;
    std::vector<TokenLogprobs> logprobs;
    FinishReason reason = FinishReason::kStop;
  };

  Json choice_json(std::size_t index) {
    Choice& choice = choices_[index];
    std::int64_t offset = 0;
    Json json = {{"index", index}};
    if (header_.kind == ReplyKind::kChat) {
      json["message"] = {{"role", "assistant"}, {"content", std::move(choice.text)}};
    } else {
      json["text"] = std::move(choice.text);
    }
    json["logprobs"] = logprobs_json(header_, choice.logprobs, offset);
    json["finish_reason"] = finish_name(choice.reason);
    return json;
  }

  ReplyHeader header_;
  std::vector<Choice> choices_;
};

class StreamWriter final : public ReplyWriter {
 public:
  explicit StreamWriter(ReplyHeader header) : header_(std::move(header)), offsets_(header_.choices) {}

  std::string open() override {
    std::string frames;
    if (header_.kind == ReplyKind::kCompletion) return frames;
    for (std::int32_t i = 0; i < header_.choices; ++i) {
      frames += frame(chunk(choice_json(i, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr)));
    }
    return frames;
  }

  std::string text(TextPiece&& piece) override {
    std::string frames = take_held();
    Json logprobs = logprobs_json(header_, piece.logprobs, offsets_.at(piece.choice));
    frames += frame(chunk(choice_json(piece.choice, content(std::move(piece.text)), std::move(logprobs), nullptr)));
    return frames;
  }

  std::string finish(std::int32_t choice, FinishReason reason) override {
    std::string frames = take_held();
    held_ = chunk(choice_json(choice, empty_delta(), nullptr, finish_name(reason)));
    return frames;
  }

  std::string done(const ReplyStats& stats) override {
    std::string frames;
    if (header_.include_usage) {
      frames = take_held();
      held_ = envelope(header_, true);
      held_["choices"] = Json::array();
      held_["usage"] = usage_json(stats);
    }
    QUERN_CHECK(!held_.is_null());
    held_["timings"] = timings_json(stats);
    frames += take_held();
    frames += "data: [DONE]\n\n";
    return frames;
  }

  std::string fail(const Error& error) override { return take_held() + "data: " + error_body(error) + "\n\n"; }

 private:
  static std::string frame(const Json& json) { return "data: " + dump(json) + "\n\n"; }

  [[nodiscard]] Json content(std::string text) const {
    if (header_.kind == ReplyKind::kCompletion) return text;
    return {{"content", std::move(text)}};
  }
  [[nodiscard]] Json empty_delta() const { return header_.kind == ReplyKind::kChat ? Json::object() : Json(""); }

  [[nodiscard]] Json choice_json(std::int32_t index, Json&& delta, Json&& logprobs, Json&& reason) const {
    Json json = {{"index", index}};
    json[header_.kind == ReplyKind::kChat ? "delta" : "text"] = std::move(delta);
    json["logprobs"] = std::move(logprobs);
    json["finish_reason"] = std::move(reason);
    return json;
  }

  [[nodiscard]] Json chunk(Json&& choice) const {
    Json json = envelope(header_, true);
    json["choices"] = Json::array({std::move(choice)});
    if (header_.include_usage) json["usage"] = nullptr;
    return json;
  }

  std::string take_held() {
    if (held_.is_null()) return {};
    std::string text = frame(held_);
    held_ = nullptr;
    return text;
  }

  ReplyHeader header_;
  std::vector<std::int64_t> offsets_;  // of each choice's next token, in characters
  Json held_;  // a finished choice's chunk: the reply's last one carries the timings, and only done tells which that is
};

std::string_view error_type(ErrorCode code) {
  switch (http_status(code)) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return http_status(code) >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json model_json(const ModelEntry& model) {
  return {{"id", model.id},      {"object", "model"},  {"created", model.created_s},
          {"owned_by", "quern"}, {"root", model.root}, {"max_model_len", model.context}};
}

}  // namespace

std::unique_ptr<ReplyWriter> body_writer(ReplyHeader header) {
  return std::make_unique<BodyWriter>(std::move(header));
}

std::unique_ptr<ReplyWriter> stream_writer(ReplyHeader header) {
  return std::make_unique<StreamWriter>(std::move(header));
}

std::string error_body(const Error& error) {
  Json inner = {{"message", error.message}, {"type", error_type(error.code)}, {"param", nullptr}};
  if (!error.param.empty()) inner["param"] = error.param;
  inner["code"] = error_name(error.code);
  if (error.code == ErrorCode::kUnsupportedExecution) inner["reasons"] = Json::array({error.message});
  return dump({{"error", std::move(inner)}});
}

std::string models_body(std::span<const ModelEntry> models) {
  Json data = Json::array();
  for (const ModelEntry& model : models) data.push_back(model_json(model));
  return dump({{"object", "list"}, {"data", std::move(data)}});
}

std::string model_body(const ModelEntry& model) {
  return dump(model_json(model));
}

}  // namespace quern::wire
