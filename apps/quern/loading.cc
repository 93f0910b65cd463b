// Options to EngineOptions, and a loaded engine.
#include "loading.h"

#include <unistd.h>

#include <cstdio>

#include "progress.h"
#include "quern/os/file.h"
#include "quern/os/random.h"
#include "quern/text/chat_template.h"
#include "values.h"

namespace quern::app {
namespace {

constexpr std::size_t kTemplateLimitBytes = 1 << 20;

/// A built-in template by name, else a file's content.
Result<std::string> template_source(const std::string& name) {
  if (const auto builtin = text::builtin_chat_template(name)) return std::string(*builtin);
  auto content = os::read_file(name, kTemplateLimitBytes);
  if (content) return content;
  return fail(ErrorCode::kInvalidRequest, "--chat-template: '{}' is no built-in template, and as a file: {}",
              one_line(name), content.error().message);
}

Result<engine::EngineOptions> engine_options(const Options& options, const ModelChoice& model) {
  engine::EngineOptions result;
  result.model = model.path;
  result.model_id = model.name;
  result.isa = options.cpu_isa;
  result.exact = options.exact;
  result.threads = options.threads;
  result.context = options.context;
  result.kv_bytes = options.kv_budget_bytes;
  result.queue_limit = options.queue;
  result.change_defaults = [overrides = options.sampling](sampling::SamplingParams& params) {
    overrides.apply(params);
  };
  if (!options.chat_template.empty()) {
    QUERN_ASSIGN(result.chat_template, template_source(options.chat_template));
  }
  if (is_synthetic(model)) {
    QUERN_ASSIGN(const ModelChoice tokenizer, find_model(store::Home(options.home), options.tokenizer));
    result.tokenizer = tokenizer.path;
  }
  return result;
}

void say_what_fits(const engine::ModelInfo& info) {
  fmt::print(stderr, "{}: {} of weights, {} kernels on {} threads\n", info.id, format_size(info.weight_bytes),
             info.device, info.threads);
  fmt::print(stderr, "KV budget {}, context {} tokens", format_size(info.kv_budget_bytes), info.context);
  if (info.context < info.model_context) fmt::print(stderr, " (the model's own is {})", info.model_context);
  fmt::print(stderr, "\n");
}

}  // namespace

Result<std::shared_ptr<engine::Engine>> load_engine(const Options& options, const ModelChoice& model,
                                                    const CancellationToken& cancellation) {
  QUERN_ASSIGN(const engine::EngineOptions engine_settings, engine_options(options, model));
  const SystemClock clock;
  Progress progress("loading " + model.name, ::isatty(STDERR_FILENO) == 1, clock);
  QUERN_ASSIGN(std::shared_ptr<engine::Engine> engine,
               engine::start_engine(engine_settings, [&](double share) { progress.update(share); }, cancellation));
  progress.finish();
  say_what_fits(engine->info());
  return engine;
}

engine::GenerateOptions generate_options(const Options& options, const engine::Engine& engine) {
  engine::GenerateOptions result;
  result.sampling = engine.info().defaults;
  result.sampling.seed = options.sampling.seed ? *options.sampling.seed : os::random_bits();
  result.max_tokens = options.max_tokens;
  result.stops = options.stops;
  return result;
}

}  // namespace quern::app
