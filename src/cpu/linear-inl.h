// Products with packed weights. One token's sums have one order, whatever the number of tokens: the tiles below only
// decide how many tokens share an unpacked weight.

QUERN_INLINE F load_scales(ScaleType type, const std::uint8_t* base, std::int64_t index) {
  switch (type) {
    case ScaleType::kF16:
      return load_f16(reinterpret_cast<const std::uint16_t*>(base) + index * kLanes);
    case ScaleType::kBf16:
      return load_bf16(reinterpret_cast<const std::uint16_t*>(base) + index * kLanes);
    default:
      return load(reinterpret_cast<const float*>(base) + index * kLanes);
  }
}

/// Bias, scale and accumulation, then the store of one panel's lanes for one token.
QUERN_INLINE void finish_lanes(const LinearArgs& a, std::int64_t token, std::int64_t panel, F value) {
  const std::int64_t n = panel * kLanes;
  const std::int64_t count = a.weight.rows - n;
  float* y = a.y + token * a.y_stride + n;
  if (a.bias != nullptr) value = value + load(a.bias + n, count);
  value = value * set(a.scale);
  if (a.accumulate) value = value + load(y, count);
  store(y, value, count);
}

/// Largest magnitude of a group over 127, values to the nearest even integer, and the sum of those integers.
static void quantize(const float* x, std::int64_t cols, std::int64_t group, std::int8_t* q, float* scales,
                     float* sums) {
  for (std::int64_t g = 0; g < cols / group; ++g, x += group, q += group) {
    F most = zero();
    for (std::int64_t i = 0; i < group; i += kLanes) most = max(most, abs(load(x + i)));
    const float amax = largest(most);
    const float inverse = amax > 1e-30F ? 127.0F / amax : 0.0F;
    I total = zero_i();
    for (std::int64_t i = 0; i < group; i += kLanes) {
      const I rounded = round(load(x + i) * set(inverse));
      store_i8(q + i, rounded);
      total = total + rounded;
    }
    scales[g] = amax / 127.0F;
    sums[g] = sum(to_float(total));  // integers below 2^24: exact in any order
  }
}

/// One panel, kRows tokens: int32 inside a group; between groups one conversion and fused multiply-adds in order.
template <bool kNibbles, bool kSymmetric, int kRows>
QUERN_INLINE void int8_tile(const LinearArgs& a, std::int64_t panel, std::int64_t token) {
  const PanelView& w = a.weight;
  const std::int64_t groups = w.cols / w.group;
  const std::uint8_t* codes = w.codes + panel * w.panel_bytes;
  const std::int8_t* q = a.q + token * w.cols;
  const float* q_scales = a.q_scales + token * groups;
  const float* q_sums = a.q_sums + token * groups;
  const I nibble = set_i(0x0f0f0f0f);
  F y[kRows];
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r) y[r] = zero();
  for (std::int64_t g = 0; g < groups; ++g) {
    I dots[kRows];
    QUERN_UNROLL
    for (int r = 0; r < kRows; ++r) dots[r] = zero_i();
    for (std::int64_t k = 0; k < w.group; k += kNibbles ? 8 : 4, codes += 4 * kLanes) {
      const I packed = load_i(codes);
      if constexpr (kNibbles) {
        const I low = packed & nibble;
        const I high = shift_right<4>(packed) & nibble;
        QUERN_UNROLL
        for (int r = 0; r < kRows; ++r) dots[r] = dot<true>(dots[r], low, q + r * w.cols + k);
        QUERN_UNROLL
        for (int r = 0; r < kRows; ++r) dots[r] = dot<true>(dots[r], high, q + r * w.cols + k + 4);
      } else {
        QUERN_UNROLL
        for (int r = 0; r < kRows; ++r) dots[r] = dot<false>(dots[r], packed, q + r * w.cols + k);
      }
    }
    q += w.group;
    const F scale = load_scales(w.scale_type, w.scales, panel * groups + g);
    const F bias = kSymmetric ? set(-w.center) : load_scales(w.scale_type, w.biases, panel * groups + g);
    QUERN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const F q_sum = set(q_sums[r * groups + g]);
      // Symmetric codes are centered while they are integers, which is exact.
      const F value =
          kSymmetric ? fma(bias, q_sum, to_float(dots[r])) * scale : fma(bias, q_sum, to_float(dots[r]) * scale);
      y[r] = fma(value, set(q_scales[r * groups + g]), y[r]);
    }
  }
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r) finish_lanes(a, token + r, panel, y[r]);
}

/// Tokens that stay in the second-level cache while a chunk's panels pass.
inline constexpr std::int64_t kTokenBlock = 128;

template <bool kNibbles, bool kSymmetric>
static void int8_panels(const LinearArgs& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t block = 0; block < a.tokens; block += kTokenBlock) {
    const std::int64_t end = block + kTokenBlock < a.tokens ? block + kTokenBlock : a.tokens;
    for (std::int64_t panel = first; panel < last; ++panel) {
      std::int64_t t = block;
      for (; t + kRowTile <= end; t += kRowTile) int8_tile<kNibbles, kSymmetric, kRowTile>(a, panel, t);
      if (kRowTile > 4 && t + 4 <= end) {
        int8_tile<kNibbles, kSymmetric, 4>(a, panel, t);
        t += 4;
      }
      if (t + 2 <= end) {
        int8_tile<kNibbles, kSymmetric, 2>(a, panel, t);
        t += 2;
      }
      if (t < end) int8_tile<kNibbles, kSymmetric, 1>(a, panel, t);
    }
  }
}

static void linear_int8(const LinearArgs& a, std::int64_t first, std::int64_t last) {
  const bool nibbles = a.weight.code_type == CodeType::kU4;
  const bool symmetric = a.weight.center != 0.0F;
  if (nibbles && symmetric) return int8_panels<true, true>(a, first, last);
  if (nibbles) return int8_panels<true, false>(a, first, last);
  if (symmetric) return int8_panels<false, true>(a, first, last);
  int8_panels<false, false>(a, first, last);
}

/// Weights as f32, four columns at a time, sixteen output lanes each.
template <CodeType kType>
struct Columns {
  const PanelView& w;
  std::int64_t panel;
  F scale, bias;

  QUERN_INLINE void enter_group(std::int64_t g) {
    if constexpr (kType == CodeType::kU4 || kType == CodeType::kU8) {
      const std::int64_t index = panel * (w.cols / w.group) + g;
      scale = load_scales(w.scale_type, w.scales, index);
      bias = w.center != 0.0F ? set(-w.center) * scale : load_scales(w.scale_type, w.biases, index);
    }
  }
  QUERN_INLINE F one(std::int64_t k) const {
    const std::uint8_t* at = w.codes + panel * w.panel_bytes;
    if constexpr (kType == CodeType::kF32) return load(reinterpret_cast<const float*>(at) + k * kLanes);
    if constexpr (kType == CodeType::kF16) return load_f16(reinterpret_cast<const std::uint16_t*>(at) + k * kLanes);
    return load_bf16(reinterpret_cast<const std::uint16_t*>(at) + k * kLanes);
  }
  QUERN_INLINE void four(std::int64_t k, F* out) const {
    if constexpr (kType == CodeType::kU4 || kType == CodeType::kU8) {
      constexpr bool kNibbles = kType == CodeType::kU4;
      I codes = load_i(w.codes + panel * w.panel_bytes + (kNibbles ? k / 8 : k / 4) * 4 * kLanes);
      if (kNibbles && k % 8 != 0) codes = shift_right<4>(codes);
      const I mask = set_i(kNibbles ? 0xf : 0xff);
      out[0] = fma(to_float(codes & mask), scale, bias);
      out[1] = fma(to_float(shift_right<8>(codes) & mask), scale, bias);
      out[2] = fma(to_float(shift_right<16>(codes) & mask), scale, bias);
      out[3] = fma(to_float(shift_right<24>(codes) & mask), scale, bias);
    } else {
      QUERN_UNROLL
      for (int j = 0; j < 4; ++j) out[j] = one(k + j);
    }
  }
};

/// One panel, kRows tokens, f32: column k goes to sum k % 4, in order; the four sums are added in pairs.
template <CodeType kType, int kRows>
QUERN_INLINE void float_tile(const LinearArgs& a, std::int64_t panel, std::int64_t token) {
  const PanelView& w = a.weight;
  const float* x = a.x + token * a.x_stride;
  Columns<kType> columns{w, panel, zero(), zero()};
  F sums[kRows][4];
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    QUERN_UNROLL
    for (int j = 0; j < 4; ++j) sums[r][j] = zero();
  }
  std::int64_t k = 0;
  for (std::int64_t g = 0; g < w.cols / w.group; ++g) {
    columns.enter_group(g);
    for (; k + 4 <= (g + 1) * w.group; k += 4) {
      F four[4];
      columns.four(k, four);
      QUERN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        QUERN_UNROLL
        for (int j = 0; j < 4; ++j) sums[r][j] = fma(four[j], set(x[r * a.x_stride + k + j]), sums[r][j]);
      }
    }
  }
  if constexpr (kType != CodeType::kU4 && kType != CodeType::kU8) {
    for (int j = 0; k < w.cols; ++k, ++j) {  // the plain floats have any width
      const F column = columns.one(k);
      for (int r = 0; r < kRows; ++r) sums[r][j] = fma(column, set(x[r * a.x_stride + k]), sums[r][j]);
    }
  }
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    finish_lanes(a, token + r, panel, (sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]));
  }
}

template <CodeType kType>
static void float_panels(const LinearArgs& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    std::int64_t t = 0;
    for (; t + kFloatRowTile <= a.tokens; t += kFloatRowTile) float_tile<kType, kFloatRowTile>(a, panel, t);
    for (; t < a.tokens; ++t) float_tile<kType, 1>(a, panel, t);
  }
}

static void linear_f32(const LinearArgs& a, std::int64_t first, std::int64_t last) {
  switch (a.weight.code_type) {
    case CodeType::kF32:
      return float_panels<CodeType::kF32>(a, first, last);
    case CodeType::kF16:
      return float_panels<CodeType::kF16>(a, first, last);
    case CodeType::kBf16:
      return float_panels<CodeType::kBf16>(a, first, last);
    case CodeType::kU4:
      return float_panels<CodeType::kU4>(a, first, last);
    case CodeType::kU8:
      return float_panels<CodeType::kU8>(a, first, last);
  }
}
