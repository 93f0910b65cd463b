// Sampler: logits to the next token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quern/base/result.h"
#include "quern/sampling/params.h"

namespace quern::sampling {

/// One draw's place: the random numbers are a function of (params.seed, choice, step).
struct DrawPlace {
  std::uint32_t choice = 0;
  std::uint64_t step = 0;  // tokens that the choice has so far
};

/// What stands before the token that is drawn: the prompt, then the output.
struct History {
  std::span<const std::int32_t> tokens;
  std::size_t prompt_tokens = 0;
};

/// Draws tokens by SamplingParams, in the order of application that it states. The result is a function of the
/// arguments alone; the members are scratch, kept so that a draw allocates nothing after the first. One thread at a
/// time.
///
/// Each filter sees what the one before it left, renormalized: top-p keeps the fewest best candidates whose
/// probabilities reach it (at least one), min-p those with at least that share of the best one's probability, XTC (when
/// its random number says so) drops every candidate of at least the threshold but for the least probable of them. Equal
/// probabilities rank by id, the lowest first.
class Sampler {
 public:
  /// A logit of -infinity is a token that can't be drawn, and so are the `banned` ones (end-of-sequence before
  /// min_tokens). kInternal when a logit is NaN or +infinity or when no token is left. `params` were checked against
  /// logits.size(). O(V); sorts only what top-k and top-p look at.
  [[nodiscard]] Result<std::int32_t> draw(std::span<const float> logits, const SamplingParams& params,
                                          const History& history, DrawPlace place,
                                          std::span<const std::int32_t> banned = {});

 private:
  struct Candidate {
    float logit = 0.0F;
    std::int32_t id = 0;
    float weight = 0.0F;  // exp((logit - best) / temperature): 1 for the best
  };

  std::span<const float> edit(std::span<const float> logits, const SamplingParams& params, const History& history,
                              std::span<const std::int32_t> banned);
  void penalize(const SamplingParams& params, const History& history);
  /// Counts the last `context` (0 = all) of `tokens` into counts_ and lists each once in seen_.
  void count(std::span<const std::int32_t> tokens, std::int32_t context);
  void weigh_candidates(std::span<const float> logits, float best, const SamplingParams& params);
  void keep_top_k(std::size_t k);
  void keep_top_p(double top_p);
  void keep_min_p(float min_p);
  void drop_top_choices(double threshold);
  [[nodiscard]] double total_weight() const;
  [[nodiscard]] static bool better(const Candidate& a, const Candidate& b);

  std::vector<float> edited_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> counts_;  // [V], zero between draws
  std::vector<std::int32_t> seen_;
};

}  // namespace quern::sampling
