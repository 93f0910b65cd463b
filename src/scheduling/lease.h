// Lease: something held until its holder gives it back.
#pragma once

#include <functional>
#include <utility>

#include "quern/base/log.h"
#include "quern/base/result.h"

namespace quern::scheduling {

/// Move-only. `give_back` runs once: on release() or on destruction, whichever is first. A default-made one holds
/// nothing.
class Lease {
 public:
  Lease() = default;
  explicit Lease(std::function<void()> give_back) : give_back_(std::move(give_back)) {}
  Lease(Lease&& other) noexcept : give_back_(std::exchange(other.give_back_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      drop();
      give_back_ = std::exchange(other.give_back_, nullptr);
    }
    return *this;
  }
  ~Lease() { drop(); }

  [[nodiscard]] bool held() const { return give_back_ != nullptr; }
  /// Gives back now. Idempotent; an exception of the giver's is returned as its error.
  Result<void> release() {
    if (!give_back_) return {};
    const auto give_back = std::exchange(give_back_, nullptr);
    try {
      give_back();
      return {};
    } catch (const std::exception& exception) {
      return fail(ErrorCode::kInternal, "a lease could not be given back: {}", exception.what());
    }
  }

 private:
  void drop() noexcept {
    if (const auto released = release(); !released) log_error("{}", released.error().message);
  }

  std::function<void()> give_back_;
};

}  // namespace quern::scheduling
