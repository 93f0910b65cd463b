// quern_accuracy: what int8 activations cost on the starter model, over a fixed text, teacher-forced.
//
// Each ISA's distribution of the next token is compared at every position with a baseline's: the same weights with f32
// activations on the best ISA, or the scalar reference (minutes). The baseline itself is held against what mlx-lm, in
// f32, says of the same text (fixtures/text/accuracy.safetensors).
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "quern/cpu/cpu_device.h"
#include "quern/model/loader.h"
#include "quern/ops/reference.h"
#include "quern/os/cpu_features.h"
#include "support/golden.h"
#include "support/model_runner.h"
#include "support/starter.h"

namespace quern {
namespace {

constexpr double kMeanKlBound = 0.01;
constexpr double kAgreementBound = 0.97;
/// Of the baseline against mlx-lm: mean difference of the log-probability of the token that follows, and the share of
/// positions with the same likeliest token, near ties left out.
constexpr double kBaselineLogprobBound = 2e-3;
constexpr double kNearTie = 0.02;
constexpr int kSkipped = 77;

struct Text {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprob;      // of the token that follows
  std::vector<std::int32_t> best;  // the likeliest
  std::vector<float> margin;       // its logit above the second's
};

/// A model on a device, running over the text.
struct Candidate {
  std::string name;
  std::unique_ptr<ops::Device> device;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<test::ModelRunner> runner;
  double kl_sum = 0.0;
  double kl_max = 0.0;
  double logprob_sum = 0.0;
  std::int64_t agree = 0;
  std::int64_t positions = 0;
};

Result<Candidate> make_candidate(std::string name, std::unique_ptr<ops::Device> device, const std::string& path,
                                 std::size_t tokens) {
  Candidate candidate;
  candidate.name = std::move(name);
  candidate.device = std::move(device);
  QUERN_ASSIGN(candidate.model, model::load_model(path, *candidate.device));
  candidate.runner =
      std::make_unique<test::ModelRunner>(*candidate.model, *candidate.device, static_cast<std::int64_t>(tokens));
  return candidate;
}

std::size_t arg_max(std::span<const float> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// Logarithm of the sum of exponentials.
double log_total(std::span<const float> logits) {
  const double largest = logits[arg_max(logits)];
  double total = 0.0;
  for (const float logit : logits) total += std::exp(logit - largest);
  return largest + std::log(total);
}

double divergence(std::span<const float> p, double p_total, std::span<const float> q, double q_total) {
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_total;
    sum += std::exp(log_p) * (log_p - (q[i] - q_total));
  }
  return sum;
}

/// How far the baseline is from mlx-lm.
struct BaselineCheck {
  double difference = 0.0;
  std::int64_t other_best = 0;
  std::int64_t clear = 0;  // positions that aren't near ties
};

void compare_position(const Text& text, std::size_t at, std::span<const float> expected,
                      std::span<const std::vector<float>> others, std::size_t row, std::span<Candidate> candidates,
                      BaselineCheck& check) {
  const std::size_t vocab = expected.size();
  const double total = log_total(expected);
  const auto next = static_cast<std::size_t>(text.tokens[at + 1]);
  check.difference += std::abs(expected[next] - total - text.logprob[at]);
  if (text.margin[at] >= kNearTie) {
    ++check.clear;
    if (arg_max(expected) != static_cast<std::size_t>(text.best[at])) ++check.other_best;
  }
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const std::span<const float> got = std::span(others[c]).subspan(row * vocab, vocab);
    const double got_total = log_total(got);
    const double kl = divergence(expected, total, got, got_total);
    candidates[c].kl_sum += kl;
    candidates[c].kl_max = std::max(candidates[c].kl_max, kl);
    candidates[c].logprob_sum += got[next] - got_total;
    if (arg_max(got) == arg_max(expected)) ++candidates[c].agree;
    ++candidates[c].positions;
  }
}

BaselineCheck compare(const Text& text, std::size_t count, Candidate& baseline, std::span<Candidate> candidates) {
  constexpr std::size_t kChunk = 64;
  const auto vocab = static_cast<std::size_t>(baseline.model->config().vocab);
  BaselineCheck check;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::span tokens = std::span(text.tokens).subspan(first, std::min(kChunk, count - first));
    const std::vector<float> expected = baseline.runner->run(tokens, tokens.size());
    std::vector<std::vector<float>> others;
    for (Candidate& candidate : candidates) others.push_back(candidate.runner->run(tokens, tokens.size()));
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      compare_position(text, first + row, std::span(expected).subspan(row * vocab, vocab), others, row, candidates,
                       check);
    }
    std::fprintf(stderr, "\r%zu of %zu tokens", first + tokens.size(), count);
  }
  std::fprintf(stderr, "\n");
  return check;
}

Result<Text> read_text() {
  QUERN_ASSIGN(const auto file, formats::SafeTensors::open(QUERN_FIXTURES "/text/accuracy.safetensors"));
  return Text{test::elements<std::int32_t>(*file.find("tokens")), test::elements<float>(*file.find("logprob")),
              test::elements<std::int32_t>(*file.find("best")), test::elements<float>(*file.find("margin"))};
}

struct Options {
  std::string model;
  std::string isa = "all";
  std::string baseline = "exact";
  std::size_t tokens = 1 << 20;
  bool check = false;
};

Result<bool> run(const Options& options) {
  QUERN_ASSIGN(const Text text, read_text());
  const std::size_t count = std::min(options.tokens, text.tokens.size() - 1);
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  if (options.baseline == "exact") {
    QUERN_ASSIGN(device, cpu::make_cpu_device({.compute = cpu::Compute::kExact}));
  }
  QUERN_ASSIGN(Candidate baseline, make_candidate(options.baseline, std::move(device), options.model, count));
  std::vector<Candidate> candidates;
  for (const cpu::Isa& isa : cpu::isas()) {
    if (!isa.supported || isa.name == "reference" || (options.isa != "all" && options.isa != isa.name)) continue;
    QUERN_ASSIGN(auto made, cpu::make_cpu_device({.isa = isa.name}));
    QUERN_ASSIGN(candidates.emplace_back(),
                 make_candidate(std::string(isa.name), std::move(made), options.model, count));
  }
  const BaselineCheck check = compare(text, count, baseline, candidates);

  const auto positions = static_cast<double>(count);
  bool good = check.difference / positions <= kBaselineLogprobBound && check.other_best == 0;
  fmt::print(
      "{}; {} tokens; baseline {} against mlx-lm: mean difference of log-probability {:.2g}, {} of {} clear "
      "choices differ\n",
      os::cpu_features().model_name, count, options.baseline, check.difference / positions, check.other_best,
      check.clear);
  fmt::print("| int8 on | mean KL | largest KL | greedy agreement | perplexity |\n|---|---|---|---|---|\n");
  for (const Candidate& candidate : candidates) {
    const double kl = candidate.kl_sum / positions;
    const double agreement = static_cast<double>(candidate.agree) / positions;
    fmt::print("| {} | {:.5f} | {:.3f} | {:.2f} % | {:.3f} |\n", candidate.name, kl, candidate.kl_max, 100 * agreement,
               std::exp(-candidate.logprob_sum / positions));
    good = good && kl <= kMeanKlBound && agreement >= kAgreementBound;
  }
  return good && !candidates.empty();
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  quern::Options options;
  CLI::App app("What int8 activations cost on the starter model");
  app.add_option("--model", options.model, "the starter's GGUF file");
  app.add_option("--isa", options.isa, "one ISA, or all that this processor has")->capture_default_str();
  app.add_option("--baseline", options.baseline, "exact (f32 activations) or reference (scalar; minutes)")
      ->check(CLI::IsMember({"exact", "reference"}))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "the first so many tokens only")->check(CLI::PositiveNumber);
  app.add_flag("--check", options.check, "exit with 1 when a bound is broken, 77 when there is no model");
  CLI11_PARSE(app, argc, argv);
  if (options.model.empty()) {
    const auto starter = quern::test::starter_model();
    if (!starter) {
      fmt::print(stderr, "{}\n", quern::test::kNoStarter);
      return quern::kSkipped;
    }
    options.model = starter->string();
  }
  const auto good = quern::run(options);
  if (!good) {
    fmt::print(stderr, "{}\n", good.error().message);
    return 1;
  }
  return *good || !options.check ? 0 : 1;
}
