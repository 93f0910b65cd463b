// Generation: one request on a BatchRunner, in bounded units: chunks of its prompt, then decode steps of its choices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "quern/base/ids.h"
#include "quern/base/result.h"
#include "quern/execution/batch_runner.h"
#include "quern/sampling/logprobs.h"
#include "quern/sampling/params.h"
#include "quern/sampling/sampler.h"

namespace quern::execution {

struct GenerationRequest {
  std::vector<std::int32_t> prompt = {};  // at least one token; prompt + max_tokens - 1 fit into the KV pages
  sampling::SamplingParams sampling = {};
  std::vector<std::int32_t> eos = {};  // end-of-sequence set
  std::int64_t max_tokens = 0;         // 0: the prompt is only evaluated
  std::int64_t min_tokens = 0;         // no end of sequence is drawn before
  bool ignore_eos = false;             // it is a token like any other
  std::int32_t vocab = 0;              // tokens [0, vocab) are drawn; at most the model's
  std::int32_t n = 1;
  std::int32_t top_logprobs = -1;  // -1 = none
  bool prompt_logprobs = false;    // of the prompt's tokens too, with top_logprobs of the best
};

enum class EndReason : std::uint8_t { kEndOfSequence, kLength };

/// Where a generation's tokens go: declared here, implemented above. Called on the engine thread, in order.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  /// The prompt is evaluated. `logprobs` (where asked for) belong to its tokens from the second on.
  virtual void on_prompt(std::vector<sampling::Logprobs> logprobs) = 0;
  virtual void on_token(std::int32_t choice, std::int32_t token, std::optional<sampling::Logprobs> logprobs) = 0;
  /// The choice ended by itself. Not called for one that was stopped.
  virtual void on_end(std::int32_t choice, EndReason reason) = 0;
  /// Asked before each step: whoever reads this choice wants no more of it.
  [[nodiscard]] virtual bool stopped(std::int32_t choice) const = 0;
};

/// Evaluates the prompt once; each choice forks its row. Choices run together in waves of as many as rows and pages
/// allow. Tokens are a function of the request alone: not of chunks, waves or pages. One thread; the runner and the
/// sink outlive it.
class Generation {
 public:
  Generation(BatchRunner& runner, GenerationRequest request, TokenSink& sink);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;
  /// Gives all rows back.
  ~Generation();

  [[nodiscard]] bool done() const { return done_; }
  /// Tokens of the prompt that came from the prefix cache.
  [[nodiscard]] std::int64_t cached_tokens() const { return cached_tokens_; }
  /// One unit: at most chunk_tokens of the prompt, or one token of each running choice. After an error it must not be
  /// called again: kMemoryAdmission, or kInternal for logits that are no numbers.
  [[nodiscard]] Result<void> advance();

 private:
  struct Choice {
    std::int32_t index = 0;
    RowId row;
    std::vector<std::int32_t> tokens;  // prompt and output
    bool ended = false;
  };

  Result<void> advance_prompt();
  Result<void> score_prompt(std::span<const float> logits, std::size_t first, std::size_t tokens);
  Result<void> advance_choices();
  Result<void> start_wave();
  [[nodiscard]] std::int32_t wave_width() const;
  /// Draws the choice's next token from `logits` [V] and publishes it. False when the choice has ended.
  Result<bool> draw(Choice& choice, std::span<const float> logits);
  /// Frees the rows of the running choices that `leaves` picks.
  void retire(const std::function<bool(const Choice&)>& leaves);

  BatchRunner& runner_;
  const GenerationRequest request_;
  TokenSink& sink_;
  sampling::Sampler sampler_;
  std::optional<RowId> prompt_row_;
  std::int64_t cached_tokens_ = 0;
  std::vector<sampling::Logprobs> prompt_logprobs_;
  std::vector<float> prompt_logits_;  // [V] after the prompt's last token: where each choice begins
  std::vector<Choice> running_;
  std::int32_t next_choice_ = 0;
  bool done_ = false;
};

}  // namespace quern::execution
