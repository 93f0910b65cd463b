// Work on a thread of its own while main waits for signals.
#pragma once

#include <functional>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"

namespace quern::app {

/// Runs `body` to its end; meanwhile this thread, main, hands each SIGINT and SIGTERM to `on_signal`, in order. Returns
/// what `body` returned. Called before any other thread starts.
[[nodiscard]] Result<int> run_watched(const std::function<Result<int>()>& body,
                                      const std::function<void(int signal)>& on_signal);

/// run_watched for work that a signal cancels: the first one cancels the token ("interrupted"), later ones change
/// nothing.
[[nodiscard]] Result<int> run_cancellable(const std::function<Result<int>(const CancellationToken&)>& body);

}  // namespace quern::app
