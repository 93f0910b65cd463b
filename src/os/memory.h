// Memory and processor time that this process may use.
#pragma once

#include <cstdint>
#include <optional>

namespace quern::os {

struct MemoryStatus {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;                       // what the system could give now, in this control group too
  std::optional<std::uint64_t> control_group_limit_bytes;  // the tightest limit above this process
};
[[nodiscard]] MemoryStatus memory_status();
/// Resident bytes of this process.
[[nodiscard]] std::uint64_t resident_bytes();
/// The most that was ever resident.
[[nodiscard]] std::uint64_t peak_resident_bytes();
/// CPUs' worth of time that the control group grants (2.5 = two and a half), nothing when unlimited.
[[nodiscard]] std::optional<double> control_group_cpus();

}  // namespace quern::os
