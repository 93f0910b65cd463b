// QUERN_CHECK: our own bugs end the process, with the place and the condition.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace quern::internal {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace quern::internal

/// Aborts unless `condition` holds. Active in every build. For what only a bug of ours can break, never for input.
#define QUERN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::quern::internal::check_failed(__FILE__, __LINE__, #condition))
