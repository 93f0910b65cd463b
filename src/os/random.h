// random_bits: numbers that nobody can foresee.
#pragma once

#include <cstdint>

namespace quern::os {

/// 64 bits from the system's random source. Thread-safe.
[[nodiscard]] std::uint64_t random_bits();

}  // namespace quern::os
