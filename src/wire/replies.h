// OpenAI's response bodies and event streams, from a reply's events.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/error.h"

namespace quern::wire {

enum class FinishReason : std::uint8_t { kStop, kLength };

struct TokenLogprob {
  std::string bytes;     // may be part of a character
  float logprob = 0.0F;  // NaN = there is none, as for the first token of an echoed prompt
};

struct TokenLogprobs {
  TokenLogprob token;
  std::vector<TokenLogprob> top = {};  // best first
};

struct TextPiece {
  std::int32_t choice = 0;
  std::string text;  // UTF-8, whole characters
  std::vector<TokenLogprobs> logprobs = {};
};

/// Counts and times of a whole HTTP request. Milliseconds.
struct ReplyStats {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  double queue_ms = 0.0;
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
};

enum class ReplyKind : std::uint8_t { kChat, kCompletion };

struct ReplyHeader {
  ReplyKind kind = ReplyKind::kChat;
  std::string id;  // without the kind's prefix
  std::string model;
  std::int64_t created_s = 0;  // Unix time
  std::int32_t choices = 1;
  bool logprobs = false;       // asked for
  bool include_usage = false;  // a stream's own last chunk; a body always has it
};

/// Turns one reply's events into response bytes; each call gives what can be sent now, perhaps nothing. In order: open,
/// then text and finish of each choice, then done; or fail at any point. Not thread-safe.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  [[nodiscard]] virtual std::string open() = 0;
  [[nodiscard]] virtual std::string text(TextPiece&& piece) = 0;
  [[nodiscard]] virtual std::string finish(std::int32_t choice, FinishReason reason) = 0;
  [[nodiscard]] virtual std::string done(const ReplyStats& stats) = 0;
  [[nodiscard]] virtual std::string fail(const Error& error) = 0;
};

/// One JSON body, given by done (or fail).
[[nodiscard]] std::unique_ptr<ReplyWriter> body_writer(ReplyHeader header);
/// Server-sent events, whole frames; `data: [DONE]` after done, not after fail.
[[nodiscard]] std::unique_ptr<ReplyWriter> stream_writer(ReplyHeader header);

/// What a silent stream says to show that it lives.
inline constexpr std::string_view kStreamComment = ": still here\n\n";

/// {"error": {"message", "type", "param", "code"}}
[[nodiscard]] std::string error_body(const Error& error);

struct ModelEntry {
  std::string id;
  std::string root;  // the id that this is another name of, or the same
  std::int64_t created_s = 0;
  std::int64_t context = 0;
};
/// GET /v1/models and GET /v1/models/{id}.
[[nodiscard]] std::string models_body(std::span<const ModelEntry> models);
[[nodiscard]] std::string model_body(const ModelEntry& model);

}  // namespace quern::wire
