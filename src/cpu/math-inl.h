// exp, tanh and erf in sixteen lanes. Each lane's result depends on its input only, so tails and positions don't
// matter.

/// Relative error below 2e-7 for x in [-87, 88]; clamped outside, so never 0 or infinity. Not-a-number stays.
QUERN_INLINE F exp(F x) {
  x = min(set(88.0F), max(set(-87.0F), x));
  const I n = round(x * set(1.44269504F));
  const F nf = to_float(n);
  F r = fma(nf, set(-0.693145751953125F), x);  // ln 2 in two parts; the first times n is exact
  r = fma(nf, set(-1.42860682e-6F), r);
  F p = set(1.0F / 5040.0F);  // |r| <= ln 2 / 2: the series ends below half a unit in the last place
  p = fma(p, r, set(1.0F / 720.0F));
  p = fma(p, r, set(1.0F / 120.0F));
  p = fma(p, r, set(1.0F / 24.0F));
  p = fma(p, r, set(1.0F / 6.0F));
  p = fma(p, r, set(0.5F));
  p = fma(p, r, set(1.0F));
  p = fma(p, r, set(1.0F));
  return p * as_float(shift_left<23>(n + set_i(127)));
}

/// Absolute error below 2e-7.
QUERN_INLINE F tanh(F x) {
  return set(1.0F) - set(2.0F) / (exp(x + x) + set(1.0F));
}

/// Absolute error below 5e-7: the rational approximation 7.1.26 of Abramowitz and Stegun.
QUERN_INLINE F erf(F x) {
  const F magnitude = abs(x);
  const F t = set(1.0F) / fma(magnitude, set(0.3275911F), set(1.0F));
  F p = set(1.061405429F);
  p = fma(p, t, set(-1.453152027F));
  p = fma(p, t, set(1.421413741F));
  p = fma(p, t, set(-0.284496736F));
  p = fma(p, t, set(0.254829592F));
  return copy_sign(set(1.0F) - p * t * exp(set(0.0F) - magnitude * magnitude), x);
}
