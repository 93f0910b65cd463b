// MemoryMap over mmap.
#include "quern/os/memory_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "quern/os/descriptor.h"
#include "quern/os/system_reason.h"

namespace quern::os {

Result<MemoryMap> MemoryMap::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe doesn't wait for its other end. It means nothing to a regular file.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return fail(ErrorCode::kIo, "can't open {}: {}", path.string(), system_reason(errno));
  struct stat status{};
  if (::fstat(file.value(), &status) != 0) {
    return fail(ErrorCode::kIo, "can't read {}: {}", path.string(), system_reason(errno));
  }
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kIo, "can't map {}: not a regular file", path.string());
  MemoryMap map;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return map;
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (address == MAP_FAILED) {
    return fail(ErrorCode::kIo, "can't map {} ({} bytes): {}", path.string(), size, system_reason(errno));
  }
  map.bytes_ = {static_cast<const std::byte*>(address), size};
  return map;
}

MemoryMap::MemoryMap(MemoryMap&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MemoryMap& MemoryMap::operator=(MemoryMap&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryMap::~MemoryMap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

// `outward` takes every page that the part touches, otherwise only the pages that lie in it whole.
void advise(std::span<const std::byte> part, int advice, bool outward) {
  if (part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto first = reinterpret_cast<std::uintptr_t>(part.data());
  auto last = first + part.size();
  if (outward) {
    first = first / page * page;
  } else {
    first = (first + page - 1) / page * page;
    last = last / page * page;
  }
  // Advice only: a refusal changes nothing but speed.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, advice);
}

}  // namespace

void MemoryMap::will_need(std::span<const std::byte> part) const {
  advise(part, MADV_WILLNEED, true);
}

void MemoryMap::drop(std::span<const std::byte> part) const {
  advise(part, MADV_DONTNEED, false);
}

}  // namespace quern::os
