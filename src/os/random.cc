// random_bits over std::random_device.
#include "quern/os/random.h"

#include <random>

namespace quern::os {

std::uint64_t random_bits() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32U) | device();
}

}  // namespace quern::os
