// Buffer: owned, aligned memory of plain elements.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace quern::tensor {

/// `size` elements at a 64-byte boundary, zeroed unless said otherwise. Move-only. Throws std::bad_alloc.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  enum class Fill { kZero, kNone };

  Buffer() = default;
  explicit Buffer(std::size_t size, Fill fill = Fill::kZero) : size_(size) {
    if (size == 0) return;
    if (size > static_cast<std::size_t>(-1) / sizeof(T) / 2) throw std::bad_alloc();
    data_.reset(static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t{kAlignment})));
    if (fill == Fill::kZero) std::uninitialized_value_construct_n(data_.get(), size);
  }

  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }
  [[nodiscard]] T& operator[](std::size_t i) { return data_.get()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data_.get()[i]; }
  [[nodiscard]] std::span<T> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(T* data) const { ::operator delete(data, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace quern::tensor
