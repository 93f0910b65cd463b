// Sixteen lanes as two AVX2 registers. Included inside the ISA's namespace and target region, after QUERN_AVX_VNNI is
// set to 0 or 1; same names as simd_avx512-inl.h, and the same result in each lane.

inline constexpr int kRowTile = 4;       // rows of activations that share an unpacked weight, int8
inline constexpr int kFloatRowTile = 1;  // the same for f32, with four sums each
inline constexpr int kQueryTile = 2;     // queries that share a converted key or value

struct F {
  __m256 lo, hi;
};
struct I {
  __m256i lo, hi;
};

QUERN_INLINE __m256i first_lanes(std::int64_t count) {
  const auto clamped = static_cast<int>(count < 0 ? 0 : count > 8 ? 8 : count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(clamped), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

QUERN_INLINE F zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
QUERN_INLINE F set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
QUERN_INLINE F load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
QUERN_INLINE F load(const float* p, std::int64_t count) {
  return {_mm256_maskload_ps(p, first_lanes(count)), _mm256_maskload_ps(p + 8, first_lanes(count - 8))};
}
QUERN_INLINE void store(float* p, F a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
QUERN_INLINE void store(float* p, F a, std::int64_t count) {
  _mm256_maskstore_ps(p, first_lanes(count), a.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(count - 8), a.hi);
}
QUERN_INLINE F load_f16(const std::uint16_t* p) {
  const auto* at = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}
QUERN_INLINE F load_f16(const std::uint16_t* p, std::int64_t count) {
  std::uint16_t padded[16] = {};
  __builtin_memcpy(padded, p, static_cast<std::size_t>(count < 16 ? count : 16) * sizeof padded[0]);
  return load_f16(padded);
}
QUERN_INLINE F load_bf16(const std::uint16_t* p) {
  const auto* at = reinterpret_cast<const __m128i*>(p);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(at)), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1)), 16))};
}
QUERN_INLINE void store_f16(std::uint16_t* p, F a, std::int64_t count) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  alignas(16) std::uint16_t all[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(all), _mm256_cvtps_ph(a.lo, kNearest));
  _mm_store_si128(reinterpret_cast<__m128i*>(all + 8), _mm256_cvtps_ph(a.hi, kNearest));
  __builtin_memcpy(p, all, static_cast<std::size_t>(count < 16 ? count : 16) * sizeof all[0]);
}

QUERN_INLINE F operator+(F a, F b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
QUERN_INLINE F operator-(F a, F b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
QUERN_INLINE F operator*(F a, F b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
QUERN_INLINE F operator/(F a, F b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
QUERN_INLINE F fma(F a, F b, F c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// The second when either isn't a number.
QUERN_INLINE F max(F a, F b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
QUERN_INLINE F min(F a, F b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
QUERN_INLINE F abs(F a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
/// a with the sign of b.
QUERN_INLINE F copy_sign(F a, F b) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_or_ps(_mm256_andnot_ps(sign, a.lo), _mm256_and_ps(sign, b.lo)),
          _mm256_or_ps(_mm256_andnot_ps(sign, a.hi), _mm256_and_ps(sign, b.hi))};
}
/// Lanes [first, last) of a, `other` elsewhere.
QUERN_INLINE F keep(F a, std::int64_t first, std::int64_t last, F other) {
  const __m256i lo = _mm256_andnot_si256(first_lanes(first), first_lanes(last));
  const __m256i hi = _mm256_andnot_si256(first_lanes(first - 8), first_lanes(last - 8));
  return {_mm256_blendv_ps(other.lo, a.lo, _mm256_castsi256_ps(lo)),
          _mm256_blendv_ps(other.hi, a.hi, _mm256_castsi256_ps(hi))};
}

QUERN_INLINE I zero_i() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
QUERN_INLINE I load_i(const void* p) {
  const auto* at = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
QUERN_INLINE I set_i(int x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
QUERN_INLINE I operator+(I a, I b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
QUERN_INLINE I operator&(I a, I b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
template <int kBits>
QUERN_INLINE I shift_right(I a) {
  return {_mm256_srli_epi32(a.lo, kBits), _mm256_srli_epi32(a.hi, kBits)};
}
template <int kBits>
QUERN_INLINE I shift_left(I a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}
QUERN_INLINE F to_float(I a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
/// To nearest, ties to even.
QUERN_INLINE I round(F a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
QUERN_INLINE F as_float(I a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
/// Sixteen integers to bytes, saturated.
QUERN_INLINE void store_i8(std::int8_t* p, I a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

template <bool kNibbles>
QUERN_INLINE __m256i dot_half(__m256i sum, __m256i codes, __m256i x) {
#if QUERN_AVX_VNNI
  return _mm256_dpbusd_avx_epi32(sum, codes, x);
#else
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kNibbles) {  // 2 * 15 * 128 fits in 16 bits
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), ones));
  } else {  // 2 * 255 * 128 doesn't: the nibbles of a byte are multiplied apart
    const __m256i nibble = _mm256_set1_epi8(0xf);
    const __m256i low = _mm256_maddubs_epi16(_mm256_and_si256(codes, nibble), x);
    const __m256i high = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi32(codes, 4), nibble), x);
    const __m256i both = _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, _mm256_set1_epi16(16)));
    return _mm256_add_epi32(sum, both);
  }
#endif
}

/// Each lane: sum + its four unsigned bytes times the four signed ones at `x`. Exact.
template <bool kNibbles>
QUERN_INLINE I dot(I sum, I codes, const std::int8_t* x) {
  int four = 0;
  __builtin_memcpy(&four, x, sizeof four);
  const __m256i all = _mm256_set1_epi32(four);
  return {dot_half<kNibbles>(sum.lo, codes.lo, all), dot_half<kNibbles>(sum.hi, codes.hi, all)};
}

/// Halves are added until one lane is left.
QUERN_INLINE float sum(F a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
QUERN_INLINE float largest(F a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
