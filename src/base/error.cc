// The table of error codes.
#include "quern/base/error.h"

#include <array>

#include "quern/base/check.h"

namespace quern {
namespace {

struct Row {
  ErrorCode code;
  int status;
  std::string_view name;
};

constexpr std::array kTable = {
    Row{ErrorCode::kInvalidRequest, 400, "invalid_request_error"},
    Row{ErrorCode::kContextLengthExceeded, 400, "context_length_exceeded"},
    Row{ErrorCode::kMemoryAdmission, 400, "memory_admission"},
    Row{ErrorCode::kInvalidApiKey, 401, "invalid_api_key"},
    Row{ErrorCode::kInvalidHost, 403, "invalid_host"},
    Row{ErrorCode::kCrossOrigin, 403, "cross_origin"},
    Row{ErrorCode::kCrossSite, 403, "cross_site"},
    Row{ErrorCode::kModelNotFound, 404, "model_not_found"},
    Row{ErrorCode::kNotFound, 404, "not_found"},
    Row{ErrorCode::kMethodNotAllowed, 405, "method_not_allowed"},
    Row{ErrorCode::kConflict, 409, "conflict"},
    Row{ErrorCode::kBodyTooLarge, 413, "body_too_large"},
    Row{ErrorCode::kHeadersTooLarge, 431, "headers_too_large"},
    Row{ErrorCode::kUnsupportedMediaType, 415, "unsupported_media_type"},
    Row{ErrorCode::kQueueFull, 429, "queue_full"},
    Row{ErrorCode::kCancelled, 499, "request_cancelled"},
    Row{ErrorCode::kUnsupportedExecution, 501, "unsupported_execution"},
    Row{ErrorCode::kNotImplemented, 501, "not_implemented"},
    Row{ErrorCode::kModelLoadFailed, 502, "model_load_failed"},
    Row{ErrorCode::kModelUnavailable, 503, "model_unavailable"},
    Row{ErrorCode::kServerClosing, 503, "server_closing"},
    Row{ErrorCode::kInvalidFile, 502, "invalid_file"},
    Row{ErrorCode::kUnsupportedFormat, 502, "unsupported_format"},
    Row{ErrorCode::kIo, 500, "io_error"},
    Row{ErrorCode::kInternal, 500, "internal_error"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  }
  return kTable.size() == static_cast<std::size_t>(ErrorCode::kInternal) + 1;
}
static_assert(in_order(), "one row a code, in the order of the enumeration");

const Row& row(ErrorCode code) {
  const auto index = static_cast<std::size_t>(code);
  QUERN_CHECK(index < kTable.size());
  return kTable[index];
}

}  // namespace

int http_status(ErrorCode code) {
  return row(code).status;
}

std::string_view error_name(ErrorCode code) {
  return row(code).name;
}

}  // namespace quern
