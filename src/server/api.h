// Api: from a request to its answer. No sockets.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "quern/base/clock.h"
#include "quern/engine/engine.h"
#include "quern/server/access.h"
#include "quern/server/generation.h"
#include "quern/server/http_request.h"
#include "quern/server/http_response.h"
#include "quern/wire/requests.h"

namespace quern::server {

/// Thread-safe.
class Api {
 public:
  /// `model_names` as ServerOptions'. `clock` must outlive it.
  Api(AccessRules access, std::vector<std::string> model_names, const Clock& clock);

  void set_engine(std::shared_ptr<engine::Engine> engine);
  /// Not ready, and new work is refused, from now on.
  void begin_drain();
  /// The engine, once it is there.
  [[nodiscard]] std::shared_ptr<engine::Engine> engine() const;

  /// What can be said before the body is read: who may ask, what isn't there, what isn't taken.
  [[nodiscard]] std::optional<HttpResponse> refuse(const HttpRequest& head) const;

  using Answer = std::variant<HttpResponse, GenerationPlan>;
  /// Of a request that wasn't refused. Generates nothing yet.
  [[nodiscard]] Answer answer(const HttpRequest& request) const;

 private:
  struct Route;
  static const Route* find_route(std::string_view path);

  [[nodiscard]] Result<std::shared_ptr<engine::Engine>> working_engine() const;
  [[nodiscard]] Result<void> check_model(const std::string& name, const engine::ModelInfo& info) const;
  [[nodiscard]] std::vector<wire::ModelEntry> models(const engine::ModelInfo& info) const;
  [[nodiscard]] GenerationPlan plan(const wire::ReplyFields& reply, const wire::GenerationFields& fields,
                                    wire::ReplyKind kind, std::size_t requests, const engine::ModelInfo& info) const;

  [[nodiscard]] Result<Answer> health(const HttpRequest& request) const;
  [[nodiscard]] Result<Answer> ready(const HttpRequest& request) const;
  [[nodiscard]] Result<Answer> list_models(const HttpRequest& request) const;
  [[nodiscard]] Result<Answer> one_model(const HttpRequest& request) const;
  [[nodiscard]] Result<Answer> chat(const HttpRequest& request) const;
  [[nodiscard]] Result<Answer> complete(const HttpRequest& request) const;

  const AccessRules access_;
  const std::vector<std::string> model_names_;
  const Clock& clock_;
  const std::int64_t started_s_;
  mutable std::mutex mutex_;
  std::shared_ptr<engine::Engine> engine_;
  bool draining_ = false;
};

/// The request's own x-request-id when it is fit to be sent back, else a made one.
[[nodiscard]] std::string request_id(const HttpRequest& request);

}  // namespace quern::server
