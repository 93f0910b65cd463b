// Cancellation: one side asks to stop, any number of others notice. The first reason wins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "quern/base/error.h"

namespace quern {

namespace internal {
struct CancellationState;
}

/// Gives a subscription back when destroyed: once `reset` or the destructor has returned, the callback isn't running
/// and never will (on the thread that runs the callback itself it returns at once).
class CancellationSubscription {
 public:
  CancellationSubscription() = default;
  CancellationSubscription(std::shared_ptr<internal::CancellationState> state, std::uint64_t id);
  CancellationSubscription(CancellationSubscription&& other) noexcept;
  CancellationSubscription& operator=(CancellationSubscription&& other) noexcept;
  ~CancellationSubscription();
  void reset();

 private:
  std::shared_ptr<internal::CancellationState> state_;
  std::uint64_t id_ = 0;
};

/// The side that notices. Cheap to copy, thread-safe; a default-made one is never cancelled.
class CancellationToken {
 public:
  CancellationToken() = default;

  [[nodiscard]] bool cancelled() const;
  /// The first reason given, once cancelled.
  [[nodiscard]] std::optional<Error> reason() const;
  /// Calls `callback` once: on the cancelling thread, or at once on this one when it's cancelled already.
  [[nodiscard]] CancellationSubscription subscribe(std::function<void(const Error&)> callback) const;

 private:
  friend class CancellationSource;
  explicit CancellationToken(std::shared_ptr<internal::CancellationState> state);
  std::shared_ptr<internal::CancellationState> state_;
};

/// The side that asks. Thread-safe.
class CancellationSource {
 public:
  CancellationSource();
  [[nodiscard]] CancellationToken token() const;
  /// True for the first call; a later reason is dropped. Subscribers are called, in the order of their coming, with no
  /// lock held.
  bool cancel(Error reason = {ErrorCode::kCancelled, "cancelled"});
  [[nodiscard]] bool cancelled() const;

 private:
  std::shared_ptr<internal::CancellationState> state_;
};

}  // namespace quern
