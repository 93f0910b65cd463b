// Routes and handlers.
#include "quern/server/api.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "quern/base/check.h"
#include "quern/os/random.h"

namespace quern::server {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

std::int64_t unix_seconds(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch()).count();
}

HttpResponse json_response(std::string body) {
  return {.status = 200, .body = std::move(body)};
}

/// "a%2Fb" → "a/b"; a broken escape stays as it is.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// application/json, with or without parameters; none is taken for it.
bool is_json(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  return type.empty() || std::ranges::equal(type, kJson, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

Result<void> check_media(const HttpRequest& head) {
  if (!is_json(head.header("content-type"))) {
    return fail(ErrorCode::kUnsupportedMediaType, "expected a body of application/json");
  }
  const std::string_view encoding = head.header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    return fail(ErrorCode::kUnsupportedMediaType, "expected a body without Content-Encoding");
  }
  return {};
}

engine::GenerateOptions engine_options(const wire::GenerationFields& fields) {
  engine::GenerateOptions options;
  options.sampling = fields.sampling;
  options.sampling.seed = fields.seed ? *fields.seed : os::random_bits();
  options.max_tokens = fields.max_tokens;
  options.min_tokens = fields.min_tokens;
  options.ignore_eos = fields.ignore_eos;
  options.stops = fields.stops;
  options.n = fields.n;
  options.top_logprobs = fields.top_logprobs;
  return options;
}

}  // namespace

struct Api::Route {
  std::string_view path;
  bool prefix;  // the path goes on
  bool post;    // else GET and HEAD
  bool work;    // needs the engine
  Result<Answer> (Api::*handler)(const HttpRequest&) const;
};

const Api::Route* Api::find_route(std::string_view path) {
  static constexpr std::array kRoutes = {
      Route{"/health", false, false, false, &Api::health},
      Route{"/ready", false, false, false, &Api::ready},
      Route{"/v1/models", false, false, true, &Api::list_models},
      Route{kModelPrefix, true, false, true, &Api::one_model},
      Route{"/v1/chat/completions", false, true, true, &Api::chat},
      Route{"/v1/completions", false, true, true, &Api::complete},
  };
  const auto found = std::ranges::find_if(kRoutes, [&](const Route& route) {
    return route.prefix ? path.starts_with(route.path) && path.size() > route.path.size() : path == route.path;
  });
  return found == kRoutes.end() ? nullptr : &*found;
}

Api::Api(AccessRules access, std::vector<std::string> model_names, const Clock& clock)
    : access_(std::move(access)),
      model_names_(std::move(model_names)),
      clock_(clock),
      started_s_(unix_seconds(clock)) {}

void Api::set_engine(std::shared_ptr<engine::Engine> engine) {
  const std::scoped_lock lock(mutex_);
  engine_ = std::move(engine);
}

void Api::begin_drain() {
  const std::scoped_lock lock(mutex_);
  draining_ = true;
}

std::shared_ptr<engine::Engine> Api::engine() const {
  const std::scoped_lock lock(mutex_);
  return engine_;
}

Result<std::shared_ptr<engine::Engine>> Api::working_engine() const {
  const std::scoped_lock lock(mutex_);
  if (draining_) return fail(ErrorCode::kServerClosing, "the server is closing");
  if (!engine_) return fail(ErrorCode::kModelUnavailable, "the model is loading");
  return engine_;
}

std::optional<HttpResponse> Api::refuse(const HttpRequest& head) const {
  if (auto allowed = check_access(head, access_); !allowed) return error_response(allowed.error());
  const Route* route = find_route(head.path);
  if (route == nullptr) return error_response({ErrorCode::kNotFound, "no such route"});
  const std::string allow = route->post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
  if (head.method == "OPTIONS") return HttpResponse{.status = 204, .body = {}, .headers = {{"Allow", allow}}};
  const bool taken = route->post ? head.method == "POST" : head.method == "GET" || head.method == "HEAD";
  if (!taken) {
    HttpResponse response = error_response({ErrorCode::kMethodNotAllowed, fmt::format("expected {}", allow)});
    response.headers.emplace_back("Allow", allow);
    return response;
  }
  if (route->post) {
    if (auto media = check_media(head); !media) return error_response(media.error());
  }
  if (route->work) {
    if (auto working = working_engine(); !working) return error_response(working.error());
  }
  return std::nullopt;
}

Api::Answer Api::answer(const HttpRequest& request) const {
  const Route* route = find_route(request.path);
  QUERN_CHECK(route != nullptr);
  auto answer = (this->*route->handler)(request);
  if (!answer) return error_response(answer.error());
  return std::move(answer).value();
}

Result<Api::Answer> Api::health(const HttpRequest&) const {
  return json_response(R"({"status":"ok"})");
}

Result<Api::Answer> Api::ready(const HttpRequest&) const {
  if (auto working = working_engine(); !working) {
    const bool closing = working.error().code == ErrorCode::kServerClosing;
    return HttpResponse{.status = 503, .body = closing ? R"({"status":"draining"})" : R"({"status":"loading"})"};
  }
  return json_response(R"({"status":"ready"})");
}

std::vector<wire::ModelEntry> Api::models(const engine::ModelInfo& info) const {
  std::vector<wire::ModelEntry> entries = {{info.id, info.id, started_s_, info.context}};
  for (const std::string& name : model_names_) {
    if (name != "*" && name != info.id) entries.push_back({name, info.id, started_s_, info.context});
  }
  return entries;
}

Result<Api::Answer> Api::list_models(const HttpRequest&) const {
  QUERN_ASSIGN(const auto engine, working_engine());
  return json_response(wire::models_body(models(engine->info())));
}

Result<Api::Answer> Api::one_model(const HttpRequest& request) const {
  QUERN_ASSIGN(const auto engine, working_engine());
  const std::string id = percent_decoded(std::string_view(request.path).substr(kModelPrefix.size()));
  QUERN_TRY(check_model(id, engine->info()));
  return json_response(wire::model_body({id, engine->info().id, started_s_, engine->info().context}));
}

Result<void> Api::check_model(const std::string& name, const engine::ModelInfo& info) const {
  if (name.empty() || std::ranges::find(model_names_, "*") != model_names_.end()) return {};
  std::string known;
  for (const auto& entry : models(info)) {
    if (entry.id == name) return {};
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  return fail(Error{ErrorCode::kModelNotFound, fmt::format("no such model; there is: {}", known), "model"});
}

GenerationPlan Api::plan(const wire::ReplyFields& reply, const wire::GenerationFields& fields, wire::ReplyKind kind,
                         std::size_t requests, const engine::ModelInfo& info) const {
  wire::ReplyHeader header{.kind = kind,
                           .id = fmt::format("{:016x}", os::random_bits()),
                           .model = reply.model.empty() ? info.id : reply.model,
                           .created_s = unix_seconds(clock_),
                           .choices = static_cast<std::int32_t>(requests) * fields.n,
                           .logprobs = fields.top_logprobs >= 0,
                           .include_usage = reply.include_usage};
  GenerationPlan plan;
  plan.requests = requests;
  plan.n = fields.n;
  plan.stream = reply.stream;
  plan.writer = reply.stream ? wire::stream_writer(std::move(header)) : wire::body_writer(std::move(header));
  return plan;
}

Result<Api::Answer> Api::chat(const HttpRequest& request) const {
  QUERN_ASSIGN(const auto engine, working_engine());
  QUERN_ASSIGN(auto parsed, wire::parse_chat_completion(request.body, engine->info().defaults));
  QUERN_TRY(check_model(parsed.reply.model, engine->info()));
  GenerationPlan made = plan(parsed.reply, parsed.generation, wire::ReplyKind::kChat, 1, engine->info());
  made.submit = [engine, chat = std::move(parsed.chat), fields = std::move(parsed.generation)](
                    std::size_t, engine::ReplySink sink, CancellationToken cancellation) {
    return engine->chat({chat, engine_options(fields)}, std::move(sink), std::move(cancellation));
  };
  return made;
}

Result<Api::Answer> Api::complete(const HttpRequest& request) const {
  QUERN_ASSIGN(const auto engine, working_engine());
  QUERN_ASSIGN(auto parsed, wire::parse_completion(request.body, engine->info().defaults));
  QUERN_TRY(check_model(parsed.reply.model, engine->info()));
  GenerationPlan made =
      plan(parsed.reply, parsed.generation, wire::ReplyKind::kCompletion, parsed.prompts.size(), engine->info());
  made.submit = [engine, prompts = std::move(parsed.prompts), echo = parsed.echo,
                 fields = std::move(parsed.generation)](std::size_t index, engine::ReplySink sink,
                                                        CancellationToken cancellation) {
    engine::CompletionRequest one{prompts[index], engine_options(fields)};
    one.options.echo = echo;
    return engine->complete(std::move(one), std::move(sink), std::move(cancellation));
  };
  return made;
}

std::string request_id(const HttpRequest& request) {
  constexpr std::size_t kLongest = 128;
  const std::string_view given = request.header("x-request-id");
  const bool fit = !given.empty() && given.size() <= kLongest &&
                   std::ranges::all_of(given, [](char c) { return c > ' ' && c < '\x7f'; });
  return fit ? std::string(given) : fmt::format("req-{:016x}", os::random_bits());
}

}  // namespace quern::server
