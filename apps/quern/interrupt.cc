// run_watched over os::SignalWatch.
#include "interrupt.h"

#include <optional>

#include "quern/os/signals.h"
#include "quern/os/thread.h"

namespace quern::app {

Result<int> run_watched(const std::function<Result<int>()>& body, const std::function<void(int)>& on_signal) {
  QUERN_ASSIGN(auto watch, os::SignalWatch::make());
  std::optional<Result<int>> outcome;
  os::Thread worker("command", [&] {
    outcome.emplace(body());
    watch.wake();
  });
  while (const auto signal = watch.wait()) on_signal(*signal);
  worker.join();
  return *std::move(outcome);
}

Result<int> run_cancellable(const std::function<Result<int>(const CancellationToken&)>& body) {
  CancellationSource source;
  return run_watched([&] { return body(source.token()); },
                     [&](int) { source.cancel({ErrorCode::kCancelled, "interrupted"}); });
}

}  // namespace quern::app
