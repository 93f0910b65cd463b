// The processors, each over the candidates that the one before left.
#include "quern/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quern/base/check.h"
#include "quern/sampling/random.h"

namespace quern::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The best logit's id, the lowest of equal ones.
Result<std::int32_t> arg_max(std::span<const float> logits) {
  float best = -kInfinity;
  std::size_t best_id = logits.size();
  bool valid = true;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    valid = valid && logit < kInfinity;  // false for NaN too
    if (logit > best) {
      best = logit;
      best_id = id;
    }
  }
  if (!valid) return fail(ErrorCode::kInternal, "the model gave a logit that is not a number below infinity");
  if (best_id == logits.size()) return fail(ErrorCode::kInternal, "no token can be drawn: every logit is -infinity");
  return static_cast<std::int32_t>(best_id);
}

}  // namespace

bool Sampler::better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

Result<std::int32_t> Sampler::draw(std::span<const float> logits, const SamplingParams& params, const History& history,
                                   DrawPlace place, std::span<const std::int32_t> banned) {
  const std::span<const float> edited = edit(logits, params, history, banned);
  QUERN_ASSIGN(const std::int32_t best, arg_max(edited));
  if (params.temperature == 0.0F || params.top_k == 1) return best;

  weigh_candidates(edited, edited[static_cast<std::size_t>(best)], params);
  const DrawRandom random = draw_random(params.seed, place.choice, place.step);
  if (params.top_p < 1.0F) keep_top_p(params.top_p);
  if (params.min_p > 0.0F) keep_min_p(params.min_p);
  if (random.xtc < params.xtc_probability) drop_top_choices(params.xtc_threshold);

  double left = random.token * total_weight();
  std::int32_t drawn = candidates_.front().id;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight == 0.0F) continue;
    drawn = candidate.id;  // the last one with a weight, should rounding leave something
    left -= candidate.weight;
    if (left < 0.0) break;
  }
  return drawn;
}

std::span<const float> Sampler::edit(std::span<const float> logits, const SamplingParams& params,
                                     const History& history, std::span<const std::int32_t> banned) {
  const bool penalties =
      params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F;
  if (params.logit_bias.empty() && !penalties && banned.empty()) return logits;
  edited_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : params.logit_bias) edited_[static_cast<std::size_t>(id)] += bias;
  if (penalties) penalize(params, history);
  for (const std::int32_t id : banned) {
    if (static_cast<std::size_t>(id) < edited_.size()) edited_[static_cast<std::size_t>(id)] = -kInfinity;
  }
  return edited_;
}

void Sampler::penalize(const SamplingParams& params, const History& history) {
  counts_.resize(edited_.size());
  const auto each_seen = [&](std::span<const std::int32_t> tokens, std::int32_t context, const auto& change) {
    count(tokens, context);
    for (const std::int32_t id : seen_) {
      auto& seen_count = counts_[static_cast<std::size_t>(id)];
      auto& logit = edited_[static_cast<std::size_t>(id)];
      if (logit != -kInfinity) logit = change(logit, static_cast<float>(seen_count));
      seen_count = 0;
    }
  };
  const auto output = history.tokens.subspan(history.prompt_tokens);
  constexpr float kMost = std::numeric_limits<float>::max();
  if (const float penalty = params.repetition_penalty; penalty != 1.0F) {
    each_seen(history.tokens, params.repetition_context, [&](float logit, float) {
      return std::clamp(logit > 0.0F ? logit / penalty : logit * penalty, -kMost, kMost);
    });
  }
  if (params.presence_penalty != 0.0F) {
    each_seen(output, params.presence_context, [&](float logit, float) { return logit - params.presence_penalty; });
  }
  if (params.frequency_penalty != 0.0F) {
    each_seen(output, params.frequency_context,
              [&](float logit, float times) { return logit - params.frequency_penalty * times; });
  }
}

void Sampler::count(std::span<const std::int32_t> tokens, std::int32_t context) {
  seen_.clear();
  if (context > 0 && static_cast<std::size_t>(context) < tokens.size()) {
    tokens = tokens.last(static_cast<std::size_t>(context));
  }
  for (const std::int32_t id : tokens) {
    if (static_cast<std::size_t>(id) >= counts_.size()) continue;  // in the prompt, but never drawn
    if (counts_[static_cast<std::size_t>(id)]++ == 0) seen_.push_back(id);
  }
}

void Sampler::weigh_candidates(std::span<const float> logits, float best, const SamplingParams& params) {
  candidates_.clear();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] != -kInfinity) candidates_.push_back({logits[id], static_cast<std::int32_t>(id)});
  }
  if (params.top_k > 0) keep_top_k(static_cast<std::size_t>(params.top_k));
  // In double: neither the difference nor a tiny temperature may overflow to NaN.
  const double scale = 1.0 / static_cast<double>(params.temperature);
  for (Candidate& candidate : candidates_) {
    const double exponent = (static_cast<double>(candidate.logit) - static_cast<double>(best)) * scale;
    candidate.weight = std::exp(static_cast<float>(std::max(exponent, -1000.0)));
  }
}

void Sampler::keep_top_k(std::size_t k) {
  if (k >= candidates_.size()) return;
  // Few: a heap of k, where nearly every candidate costs one comparison. Many: a selection, then a sort of what it
  // kept.
  constexpr std::size_t kFew = 256;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(k);
  if (k <= kFew) {
    std::partial_sort(candidates_.begin(), end, candidates_.end(), better);
  } else {
    std::nth_element(candidates_.begin(), end, candidates_.end(), better);
    std::sort(candidates_.begin(), end, better);
  }
  candidates_.resize(k);
}

void Sampler::keep_top_p(double top_p) {
  const double wanted = top_p * total_weight();
  double reached = 0.0;
  // Sorts the best few, then four times as many, until they reach top-p: seldom more than the first few.
  std::size_t sorted = 0;
  for (std::size_t step = 64; sorted < candidates_.size(); step *= 4) {
    const std::size_t until = std::min(candidates_.size(), sorted + step);
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted);
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(until);
    std::partial_sort(begin, end, candidates_.end(), better);
    for (; sorted < until; ++sorted) {
      reached += candidates_[sorted].weight;
      if (reached < wanted) continue;
      candidates_.resize(sorted + 1);
      return;
    }
  }
}

void Sampler::keep_min_p(float min_p) {
  // The best one's weight is 1 and no filter drops it.
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < min_p; });
}

void Sampler::drop_top_choices(double threshold) {
  const double least_weight = threshold * total_weight();
  const Candidate* least = nullptr;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight >= least_weight && (least == nullptr || better(*least, candidate))) least = &candidate;
  }
  if (least == nullptr) return;
  const Candidate kept = *least;
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return candidate.weight >= least_weight && candidate.id != kept.id;
  });
}

double Sampler::total_weight() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

}  // namespace quern::sampling
