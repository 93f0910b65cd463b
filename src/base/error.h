// The closed set of error codes, the one table that maps them to HTTP, and Error itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quern {

/// Why something failed. Closed: a new code is a new row of the table in error.cc.
enum class ErrorCode : std::uint8_t {
  kInvalidRequest,         // a caller's input is wrong
  kContextLengthExceeded,  // the prompt leaves no room for one token
  kMemoryAdmission,        // the request could never fit into memory
  kInvalidApiKey,
  kInvalidHost,
  kCrossOrigin,
  kCrossSite,
  kModelNotFound,
  kNotFound,
  kMethodNotAllowed,
  kConflict,
  kBodyTooLarge,
  kHeadersTooLarge,
  kUnsupportedMediaType,
  kQueueFull,
  kCancelled,             // whoever asked has gone away, or asked to stop
  kUnsupportedExecution,  // the served model can't run a request of this shape
  kNotImplemented,
  kModelLoadFailed,
  kModelUnavailable,
  kServerClosing,
  kInvalidFile,        // bytes from outside break their format
  kUnsupportedFormat,  // well-formed, but nothing that we can run
  kIo,                 // the system refused: open, read, map, write
  kInternal,           // our own bug
};

/// HTTP status of an error, as `spec/http.md` lists them.
[[nodiscard]] int http_status(ErrorCode code);
/// Stable snake_case name, used as `code` in JSON bodies and in logs.
[[nodiscard]] std::string_view error_name(ErrorCode code);

/// What failed, for people. The message says what was expected and what was seen, and never holds prompt text.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  /// The request field at fault, where there is one ("temperature", "messages[2].role").
  std::string param = {};
};

}  // namespace quern
