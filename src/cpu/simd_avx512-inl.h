// Sixteen lanes as one AVX-512 register. Included inside the ISA's namespace and target region; same names as
// simd_avx2-inl.h, and the same result in each lane.

inline constexpr int kRowTile = 8;       // rows of activations that share an unpacked weight, int8
inline constexpr int kFloatRowTile = 4;  // the same for f32, with four sums each
inline constexpr int kQueryTile = 4;     // queries that share a converted key or value

struct F {
  __m512 v;
};
struct I {
  __m512i v;
};

QUERN_INLINE __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffU : (1U << count) - 1U);
}

QUERN_INLINE F zero() {
  return {_mm512_setzero_ps()};
}
QUERN_INLINE F set(float x) {
  return {_mm512_set1_ps(x)};
}
QUERN_INLINE F load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
QUERN_INLINE F load(const float* p, std::int64_t count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
QUERN_INLINE void store(float* p, F a) {
  _mm512_storeu_ps(p, a.v);
}
QUERN_INLINE void store(float* p, F a, std::int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), a.v);
}
QUERN_INLINE F load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
QUERN_INLINE F load_f16(const std::uint16_t* p, std::int64_t count) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), p))};
}
QUERN_INLINE F load_bf16(const std::uint16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
QUERN_INLINE void store_f16(std::uint16_t* p, F a, std::int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

QUERN_INLINE F operator+(F a, F b) {
  return {_mm512_add_ps(a.v, b.v)};
}
QUERN_INLINE F operator-(F a, F b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
QUERN_INLINE F operator*(F a, F b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
QUERN_INLINE F operator/(F a, F b) {
  return {_mm512_div_ps(a.v, b.v)};
}
QUERN_INLINE F fma(F a, F b, F c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
/// The second when either isn't a number.
QUERN_INLINE F max(F a, F b) {
  return {_mm512_max_ps(a.v, b.v)};
}
QUERN_INLINE F min(F a, F b) {
  return {_mm512_min_ps(a.v, b.v)};
}
QUERN_INLINE F abs(F a) {
  return {_mm512_abs_ps(a.v)};
}
/// a with the sign of b.
QUERN_INLINE F copy_sign(F a, F b) {
  const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000U));
  return {
      _mm512_castsi512_ps(_mm512_ternarylogic_epi32(sign, _mm512_castps_si512(b.v), _mm512_castps_si512(a.v), 0xca))};
}
/// Lanes [first, last) of a, `other` elsewhere.
QUERN_INLINE F keep(F a, std::int64_t first, std::int64_t last, F other) {
  const __mmask16 below_last = last <= 0 ? __mmask16{0} : first_lanes(last);
  const __mmask16 below_first = first <= 0 ? __mmask16{0} : first_lanes(first);
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(below_last & ~below_first), other.v, a.v)};
}

QUERN_INLINE I zero_i() {
  return {_mm512_setzero_si512()};
}
QUERN_INLINE I load_i(const void* p) {
  return {_mm512_loadu_si512(p)};
}
QUERN_INLINE I set_i(int x) {
  return {_mm512_set1_epi32(x)};
}
QUERN_INLINE I operator+(I a, I b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
QUERN_INLINE I operator&(I a, I b) {
  return {_mm512_and_si512(a.v, b.v)};
}
template <unsigned kBits>
QUERN_INLINE I shift_right(I a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
template <unsigned kBits>
QUERN_INLINE I shift_left(I a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
QUERN_INLINE F to_float(I a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
/// To nearest, ties to even.
QUERN_INLINE I round(F a) {
  return {_mm512_cvtps_epi32(a.v)};
}
QUERN_INLINE F as_float(I a) {
  return {_mm512_castsi512_ps(a.v)};
}
/// Sixteen integers to bytes, saturated.
QUERN_INLINE void store_i8(std::int8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}

/// Each lane: sum + its four unsigned bytes times the four signed ones at `x`. Exact.
template <bool kNibbles>
QUERN_INLINE I dot(I sum, I codes, const std::int8_t* x) {
  int four = 0;
  __builtin_memcpy(&four, x, sizeof four);
  return {_mm512_dpbusd_epi32(sum.v, codes.v, _mm512_set1_epi32(four))};
}

/// Halves are added until one lane is left.
QUERN_INLINE float sum(F a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
QUERN_INLINE float largest(F a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
