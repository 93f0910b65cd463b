// Loading a model for serve, chat and generate: options to an engine, with progress and what came of it.
#pragma once

#include <memory>

#include "models.h"
#include "options.h"
#include "quern/base/cancellation.h"
#include "quern/engine/engine.h"

namespace quern::app {

/// Starts an engine for the model. On standard error: progress, and once loaded the KV budget and the context that
/// follows from it. Errors: of the files that options name, and start_engine's.
[[nodiscard]] Result<std::shared_ptr<engine::Engine>> load_engine(const Options& options, const ModelChoice& model,
                                                                  const CancellationToken& cancellation);

/// What a request is made with when nothing else is said: the model's defaults, the options' overrides, a seed.
[[nodiscard]] engine::GenerateOptions generate_options(const Options& options, const engine::Engine& engine);

}  // namespace quern::app
