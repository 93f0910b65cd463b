// Engine: a resident model that answers requests. What the server, the terminal chat and later jobs talk to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/sampling/params.h"
#include "quern/text/chat_template.h"
#include "quern/text/tokenizer.h"

namespace quern::engine {

enum class FinishReason : std::uint8_t { kStop, kLength };

/// What a reply is made with, beside its prompt. A field that the request left out has the model's default already
/// (ModelInfo::defaults), and `sampling.seed` a random one.
struct GenerateOptions {
  sampling::SamplingParams sampling;
  std::optional<std::int64_t> max_tokens;  // clamped to the context's room; absent = all the room
  std::int64_t min_tokens = 0;             // end-of-sequence and stops don't end the reply before
  bool ignore_eos = false;
  std::vector<std::string> stops;
  std::int32_t n = 1;              // choices
  std::int32_t top_logprobs = -1;  // -1 = no logprobs, 0 to 20 = the token's own and that many of the best
  bool echo = false;               // completions: the prompt comes first in the text
};

struct ChatRequest {
  text::ChatInput chat;
  GenerateOptions options;
};

struct CompletionRequest {
  std::variant<std::string, std::vector<text::TokenId>> prompt;
  GenerateOptions options;
};

struct TokenLogprob {
  text::TokenId id = 0;
  std::string bytes;
  float logprob = 0.0F;
};

struct TextDelta {
  std::int32_t choice = 0;
  std::string text;  // whole characters
  struct Token {
    TokenLogprob token;
    std::vector<TokenLogprob> top;
    bool has_logprob = true;  // false for the first token of an echoed prompt: nothing stands before it (null in JSON)
  };
  std::vector<Token> logprobs;  // of the tokens that this text came from, where asked for
};

/// Counts and times of one request. Milliseconds.
struct GenerateStats {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t generated_tokens = 0;  // over all choices, end-of-sequence counted
  double queue_ms = 0.0;
  double prefill_ms = 0.0;  // admission to first token
  double decode_ms = 0.0;   // first token to the last
};

/// The reply's events: Started, then deltas and Finished of each choice, then Done; or Failed at any point, then
/// nothing.
struct ReplyStarted {
  std::int64_t prompt_tokens = 0;  // the prompt was valid and is admitted to the queue: a stream may open now
};
struct ChoiceFinished {
  std::int32_t choice = 0;
  FinishReason reason = FinishReason::kStop;
};
struct ReplyDone {
  GenerateStats stats;
};
struct ReplyFailed {
  Error error;  // kCancelled when the request's own cancellation ended it
};
using ReplyEvent = std::variant<ReplyStarted, TextDelta, ChoiceFinished, ReplyDone, ReplyFailed>;

/// Receives one reply's events in order, one at a time, on a thread of the engine's; must not block.
using ReplySink = std::function<void(ReplyEvent&&)>;

/// What is resident.
struct ModelInfo {
  std::string id;    // as /v1/models lists it
  std::string path;  // where it was loaded from
  std::string architecture;
  std::int64_t context = 0;        // tokens a request may use: min(the model's, what fits)
  std::int64_t model_context = 0;  // what the model was trained for
  std::size_t weight_bytes = 0;
  std::size_t kv_budget_bytes = 0;
  std::string device;  // "avx512"
  int threads = 0;
  bool has_chat_template = false;
  sampling::SamplingParams defaults;  // generation_config.json over built-in
};

/// Counts for /health, /ready and the terminal. `requests_*` only grow.
struct EngineStatus {
  std::int64_t active = 0;
  std::int64_t queued = 0;
  std::int64_t requests_accepted = 0;
  std::int64_t requests_finished = 0;
  std::int64_t generated_tokens = 0;
};

/// Thread-safe; submitting never waits for the model. Destruction cancels what is left and joins.
class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;
  [[nodiscard]] virtual const text::Tokenizer& tokenizer() const = 0;
  [[nodiscard]] virtual EngineStatus status() const = 0;

  /// Prepares (template, tokens) on the preparation pool and queues, first come, first served. What is wrong with the
  /// request comes as ReplyFailed, never after ReplyStarted: kInvalidRequest, kContextLengthExceeded (both numbers).
  /// Refused at once, without any event: kQueueFull, kServerClosing.
  [[nodiscard]] virtual Result<void> chat(ChatRequest request, ReplySink sink, CancellationToken cancellation) = 0;
  [[nodiscard]] virtual Result<void> complete(CompletionRequest request, ReplySink sink,
                                              CancellationToken cancellation) = 0;

  /// Refuses new work from now on; what runs goes on. Idempotent.
  virtual void stop_admission() = 0;
  /// stop_admission, cancels everything with `reason`, waits until all have had their last event. Idempotent.
  virtual void close(Error reason) = 0;
};

struct EngineOptions {
  std::string model;     // path or synthetic: name
  std::string model_id;  // what to call it
  std::string isa = "auto";
  bool exact = false;
  int threads = 0;                           // 0 = the cores that this process may use
  std::optional<std::int64_t> context;       // less than the model's
  std::optional<std::uint64_t> kv_bytes;     // instead of the default budget
  std::optional<std::string> chat_template;  // source, instead of the model's
  std::filesystem::path tokenizer;           // for synthetic: the model whose tokenizer is used (folder or .gguf)
  std::size_t queue_limit = 64;
  /// Changes the model's own sampling defaults before they stand in ModelInfo; empty = as the model has them.
  std::function<void(sampling::SamplingParams&)> change_defaults = {};
};

/// Loads a model and starts its threads. `progress` as model::LoadProgress.
[[nodiscard]] Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options,
                                                           const std::function<void(double)>& progress = {},
                                                           const CancellationToken& cancellation = {});

}  // namespace quern::engine
