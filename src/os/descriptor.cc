// Closing a descriptor.
#include "quern/os/descriptor.h"

#include <unistd.h>

namespace quern::os {

void Descriptor::reset() {
  if (const int value = std::exchange(value_, -1); value >= 0) ::close(value);
}

}  // namespace quern::os
