// Operations on one row of activations.

static void rms_norm(const float* x, const float* weight, std::int64_t cols, float epsilon, float* out) {
  F squares = zero();
  for (std::int64_t i = 0; i < cols; i += kLanes) {
    const F part = load(x + i, cols - i);
    squares = fma(part, part, squares);
  }
  const float mean = sum(squares) / static_cast<float>(cols);
  const F factor = set(1.0F / __builtin_sqrtf(mean + epsilon));
  for (std::int64_t i = 0; i < cols; i += kLanes) {
    store(out + i, load(x + i, cols - i) * factor * load(weight + i, cols - i), cols - i);
  }
}

template <ops::Activation kActivation>
QUERN_INLINE F activate(F x) {
  if constexpr (kActivation == ops::Activation::kSilu) {
    return x / (set(1.0F) + exp(set(0.0F) - x));
  } else if constexpr (kActivation == ops::Activation::kGeluTanh) {
    const F cubic = fma(x * x * x, set(0.044715F), x);
    return set(0.5F) * x * (set(1.0F) + tanh(set(0.7978845608028654F) * cubic));
  } else {
    return set(0.5F) * x * (set(1.0F) + erf(x * set(0.7071067811865476F)));
  }
}

template <ops::Activation kActivation>
static void gated_row(const float* gate, const float* up, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t left = count - i;
    store(out + i, activate<kActivation>(load(gate + i, left)) * load(up + i, left), left);
  }
}

static void gated(ops::Activation activation, const float* gate, const float* up, std::int64_t count, float* out) {
  switch (activation) {
    case ops::Activation::kSilu:
      return gated_row<ops::Activation::kSilu>(gate, up, count, out);
    case ops::Activation::kGeluTanh:
      return gated_row<ops::Activation::kGeluTanh>(gate, up, count, out);
    case ops::Activation::kGelu:
      return gated_row<ops::Activation::kGelu>(gate, up, count, out);
  }
}

static void rotate_halves(float* head, const float* cosines, const float* sines, std::int64_t half) {
  for (std::int64_t i = 0; i < half; i += kLanes) {
    const std::int64_t left = half - i;
    const F a = load(head + i, left);
    const F b = load(head + half + i, left);
    const F c = load(cosines + i, left);
    const F s = load(sines + i, left);
    store(head + i, a * c - b * s, left);
    store(head + half + i, fma(b, c, a * s), left);
  }
}

static void to_f16(const float* x, std::int64_t count, std::uint16_t* out) {
  const F most = set(65504.0F);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    store_f16(out + i, min(most, max(zero() - most, load(x + i, count - i))), count - i);
  }
}
