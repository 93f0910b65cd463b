// EngineParts: what an engine is made of, so that a test, or a program that embeds it, brings its own.
#pragma once

#include <cstddef>
#include <memory>

#include "quern/base/clock.h"
#include "quern/engine/engine.h"
#include "quern/execution/batch_runner.h"
#include "quern/text/chat_template.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

struct EngineParts {
  ModelInfo info;  // `context` is what a request may use; the runner has pages for it and one more
  std::unique_ptr<execution::BatchRunner> runner;
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<const text::ChatTemplate> chat_template;  // null: chats are refused
  std::shared_ptr<const Clock> clock;
  std::size_t queue_limit = 64;  // requests that wait, at least 1
};

/// Starts the engine's threads.
[[nodiscard]] std::unique_ptr<Engine> make_engine(EngineParts parts);

}  // namespace quern::engine
