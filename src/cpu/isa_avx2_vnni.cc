// The kernels compiled for avx2-vnni.
#include "quern/cpu/isa.h"

#if defined(__x86_64__)

#define QUERN_ISA_NAME "avx2-vnni"
#define QUERN_AVX_VNNI 1
QUERN_BEGIN_TARGET("avx2,avxvnni,fma,f16c")
namespace quern::cpu::avx2_vnni {
namespace {
#include "quern/cpu/simd_avx2-inl.h"
// The order matters: the kernels use what stands above.
#include "quern/cpu/kernels-inl.h"
}  // namespace
}  // namespace quern::cpu::avx2_vnni
QUERN_END_TARGET

namespace quern::cpu {
const Kernels* avx2_vnni_kernels() {
  return &avx2_vnni::kKernels;
}
}  // namespace quern::cpu

#else

namespace quern::cpu {
const Kernels* avx2_vnni_kernels() {
  return nullptr;
}
}  // namespace quern::cpu

#endif
