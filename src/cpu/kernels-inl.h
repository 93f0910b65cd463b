// The operations over sixteen lanes, included once per ISA inside its namespace and target region, after its simd file.
// No templates of the standard library here: an instance compiled for one ISA could be linked into another's code.

// clang-format off
#include "quern/cpu/math-inl.h"
#include "quern/cpu/linear-inl.h"
#include "quern/cpu/elementwise-inl.h"
#include "quern/cpu/attention-inl.h"
// clang-format on

inline constexpr Kernels kKernels = {
    .name = QUERN_ISA_NAME,
    .quantize = quantize,
    .linear_int8 = linear_int8,
    .linear_f32 = linear_f32,
    .rms_norm = rms_norm,
    .gated = gated,
    .rotate_halves = rotate_halves,
    .to_f16 = to_f16,
    .attend = attend,
    .merge = merge,
    .finish = finish,
};
