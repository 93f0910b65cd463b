// What the processor can do, as this process may really use it.
#pragma once

#include <string>

namespace quern::os {

/// Instruction sets: the processor has them *and* the system saves their registers (and, for AMX, has granted them).
struct CpuFeatures {
  std::string model_name;  // "AMD EPYC ..."
  bool avx2 = false;       // with FMA and F16C
  bool avx_vnni = false;
  bool avx512 = false;  // F, BW, CD, DQ, VL
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
  bool neon_dot = false;
};

/// Asks the processor and the system (on Linux AMX must be requested; the request is made here, once a process).
[[nodiscard]] const CpuFeatures& cpu_features();
/// Cores that this process may run on: affinity and the control group's quota.
[[nodiscard]] int usable_cores();

}  // namespace quern::os
