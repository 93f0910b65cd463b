// Descriptor: a file descriptor that is closed when its owner goes.
#pragma once

#include <utility>

namespace quern::os {

/// Owns a descriptor, or nothing (-1). Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  [[nodiscard]] int value() const { return value_; }
  [[nodiscard]] bool valid() const { return value_ >= 0; }
  void reset();

 private:
  int value_ = -1;
};

}  // namespace quern::os
