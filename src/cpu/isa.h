// What each ISA's unit includes first: intrinsics, and the macros that open and close a target region.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "quern/cpu/kernels.h"

#define QUERN_INLINE inline __attribute__((always_inline))
#define QUERN_PRAGMA(x) _Pragma(#x)

#if defined(__clang__)
#define QUERN_BEGIN_TARGET(features) \
  QUERN_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define QUERN_END_TARGET QUERN_PRAGMA(clang attribute pop)
#define QUERN_UNROLL QUERN_PRAGMA(clang loop unroll(full))
#else
#define QUERN_BEGIN_TARGET(features) QUERN_PRAGMA(GCC push_options) QUERN_PRAGMA(GCC target(features))
#define QUERN_END_TARGET QUERN_PRAGMA(GCC pop_options)
#define QUERN_UNROLL QUERN_PRAGMA(GCC unroll 16)
#endif
