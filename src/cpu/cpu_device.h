// The CPU device: ISA kernels behind ops::Device, chosen once.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/ops/device.h"

namespace quern::cpu {

enum class Compute : std::uint8_t {
  kInt8,   // activations quantized to int8 per token and group for quantized weights
  kExact,  // activations stay f32
};

struct CpuOptions {
  /// One of isa_names(), or "auto". "reference" gives the scalar reference.
  std::string_view isa = "auto";
  /// Threads that compute, the calling one included; 0 = the cores that this process may use.
  int threads = 0;
  Compute compute = Compute::kInt8;
};

/// What this build has, best first; supported = this processor and system can run it.
struct Isa {
  std::string_view name;
  bool supported;
};
[[nodiscard]] std::vector<Isa> isas();

/// kInvalidRequest for an ISA that isn't known or that this processor lacks (the message lists what it has).
[[nodiscard]] Result<std::unique_ptr<ops::Device>> make_cpu_device(const CpuOptions& options);

}  // namespace quern::cpu
