// Result<T>: a value or an Error, for what can fail at run time.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <utility>

#include "quern/base/error.h"

namespace quern {

/// A value or an Error. `std::expected`, marked so that it can't be dropped by accident.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

/// `return fail(ErrorCode::kInvalidFile, "{}: {} bytes, expected {}", path, got, want);`
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// The same for an error that was seen already: passes it up unchanged.
[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected(std::move(error));
}

}  // namespace quern

#define QUERN_CONCAT_INNER(a, b) a##b
#define QUERN_CONCAT(a, b) QUERN_CONCAT_INNER(a, b)

/// Returns the error of a Result<void> expression, if it has one.
#define QUERN_TRY(expression)                                                                                   \
  do {                                                                                                          \
    if (auto quern_result = (expression); !quern_result) return ::quern::fail(std::move(quern_result).error()); \
  } while (false)

/// `QUERN_ASSIGN(auto file, open(path));` declares or assigns the value, or returns the error.
#define QUERN_ASSIGN(target, expression) QUERN_ASSIGN_INNER(QUERN_CONCAT(quern_result_, __LINE__), target, expression)
#define QUERN_ASSIGN_INNER(result, target, expression)          \
  auto result = (expression);                                   \
  if (!result) return ::quern::fail(std::move(result).error()); \
  target = std::move(result).value()
