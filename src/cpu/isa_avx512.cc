// The kernels compiled for avx512.

// GCC 12 takes the undefined registers in its own AVX-512 intrinsics for a mistake.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "quern/cpu/isa.h"

#if defined(__x86_64__)

#define QUERN_ISA_NAME "avx512"

QUERN_BEGIN_TARGET("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
namespace quern::cpu::avx512 {
namespace {
#include "quern/cpu/simd_avx512-inl.h"
// The order matters: the kernels use what stands above.
#include "quern/cpu/kernels-inl.h"
}  // namespace
}  // namespace quern::cpu::avx512
QUERN_END_TARGET

namespace quern::cpu {
const Kernels* avx512_kernels() {
  return &avx512::kKernels;
}
}  // namespace quern::cpu

#else

namespace quern::cpu {
const Kernels* avx512_kernels() {
  return nullptr;
}
}  // namespace quern::cpu

#endif
