// ExecutionContext: backend state that requests of one key share (the same adapter set).
#pragma once

#include <functional>
#include <string>

#include "quern/base/result.h"
#include "quern/scheduling/lease.h"

namespace quern::scheduling {

/// Requests with equal keys may run in one batch. `enter` makes the state current until its lease goes.
struct ExecutionContext {
  std::string key;
  std::function<Result<Lease>()> enter;
};

}  // namespace quern::scheduling
