// Counter-based random numbers: a draw is a function of (seed, choice, step), with no state to carry, save or restore.
#pragma once

#include <array>
#include <cstdint>

namespace quern::sampling {

/// Philox 4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
/// bijection of the counter for each key, whose outputs over all counters pass the usual statistical batteries.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

/// The independent uniform numbers in [0, 1) that one draw uses, 53 bits each.
struct DrawRandom {
  double token = 0.0;  // which candidate
  double xtc = 0.0;    // whether XTC applies
};

/// Key = seed; counter = (step, choice).
[[nodiscard]] DrawRandom draw_random(std::uint64_t seed, std::uint32_t choice, std::uint64_t step);

}  // namespace quern::sampling
