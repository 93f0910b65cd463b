// Prompt chunks, waves of choices, decode steps.
#include "quern/execution/generation.h"

#include <algorithm>
#include <utility>

#include "quern/base/check.h"

namespace quern::execution {

Generation::Generation(BatchRunner& runner, GenerationRequest request, TokenSink& sink)
    : runner_(runner), request_(std::move(request)), sink_(sink) {
  QUERN_CHECK(!request_.prompt.empty() && request_.n > 0);
  QUERN_CHECK(request_.vocab > 0 && request_.vocab <= runner.config().vocab);
  // A token that came from the cache has no logits.
  const auto prefix = request_.prompt_logprobs ? std::span<const std::int32_t>() : std::span(request_.prompt);
  prompt_row_ = runner_.open(prefix, std::ssize(request_.prompt) + request_.max_tokens);
  cached_tokens_ = runner_.stored_tokens(*prompt_row_);
}

Generation::~Generation() {
  for (const Choice& choice : running_) runner_.close(choice.row);
  if (prompt_row_) runner_.close(*prompt_row_);
}

Result<void> Generation::advance() {
  QUERN_CHECK(!done_);
  const bool prompt_left = prompt_row_ && runner_.stored_tokens(*prompt_row_) < std::ssize(request_.prompt);
  if (prompt_left) {
    QUERN_TRY(advance_prompt());
  } else if (running_.empty()) {
    QUERN_TRY(start_wave());
  } else {
    QUERN_TRY(advance_choices());
  }
  done_ = running_.empty() && next_choice_ == request_.n;
  return {};
}

Result<void> Generation::advance_prompt() {
  const RunnerLimits& limits = runner_.limits();
  const auto first = static_cast<std::size_t>(runner_.stored_tokens(*prompt_row_));
  const auto most = static_cast<std::size_t>(
      request_.prompt_logprobs ? std::min(limits.chunk_tokens, limits.max_outputs) : limits.chunk_tokens);
  const std::size_t tokens = std::min(most, request_.prompt.size() - first);
  const bool last = first + tokens == request_.prompt.size();
  RowWork work{*prompt_row_, std::span(request_.prompt).subspan(first, tokens), RowWork::Outputs::kNone};
  if (request_.prompt_logprobs) {
    work.outputs = RowWork::Outputs::kAll;
  } else if (last && request_.max_tokens > 0) {
    work.outputs = RowWork::Outputs::kLast;
  }
  QUERN_ASSIGN(const std::span<const float> logits, runner_.run({&work, 1}));
  if (request_.prompt_logprobs) QUERN_TRY(score_prompt(logits, first, tokens));
  if (!last) return {};

  sink_.on_prompt(std::move(prompt_logprobs_));
  if (request_.max_tokens > 0) {
    const auto final_row = logits.last(static_cast<std::size_t>(runner_.config().vocab));
    prompt_logits_.assign(final_row.begin(), final_row.end());
    return start_wave();
  }
  for (; next_choice_ < request_.n; ++next_choice_) sink_.on_end(next_choice_, EndReason::kLength);
  return {};
}

Result<void> Generation::score_prompt(std::span<const float> logits, std::size_t first, std::size_t tokens) {
  const auto stride = static_cast<std::size_t>(runner_.config().vocab);
  for (std::size_t i = 0; i < tokens && first + i + 1 < request_.prompt.size(); ++i) {
    QUERN_ASSIGN(auto scored, sampling::logprobs_of(logits.subspan(i * stride, stride), request_.prompt[first + i + 1],
                                                    request_.top_logprobs));
    prompt_logprobs_.push_back(std::move(scored));
  }
  return {};
}

std::int32_t Generation::wave_width() const {
  const std::int64_t prompt = std::ssize(request_.prompt);
  const std::int64_t stored = prompt + request_.max_tokens - 1;  // the last token is drawn and never stored
  const std::int64_t own_pages = runner_.pages_for(stored) - prompt / ops::kPageTokens;
  const std::int64_t fit = own_pages == 0 ? request_.n : runner_.available_pages() / own_pages;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(fit, 1, std::min(runner_.limits().max_rows, request_.n - next_choice_)));
}

Result<void> Generation::start_wave() {
  const std::int32_t end = next_choice_ + wave_width();
  for (; next_choice_ < end; ++next_choice_) {
    if (sink_.stopped(next_choice_)) continue;
    Choice choice{next_choice_, runner_.fork(*prompt_row_), request_.prompt};
    auto goes_on = draw(choice, prompt_logits_);
    if (goes_on && *goes_on) {
      running_.push_back(std::move(choice));
    } else {
      runner_.close(choice.row);
      if (!goes_on) return fail(std::move(goes_on).error());
    }
  }
  // Who writes last to the prompt's partial page then needs no copy of it.
  if (next_choice_ == request_.n) runner_.close(*std::exchange(prompt_row_, std::nullopt));
  return {};
}

Result<void> Generation::advance_choices() {
  retire([&](const Choice& choice) { return sink_.stopped(choice.index); });
  if (running_.empty()) return {};
  std::vector<RowWork> work;
  work.reserve(running_.size());
  for (const Choice& choice : running_) work.push_back({choice.row, std::span(choice.tokens).last(1)});
  QUERN_ASSIGN(const std::span<const float> logits, runner_.run(work));

  const auto stride = static_cast<std::size_t>(runner_.config().vocab);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    QUERN_ASSIGN(const bool goes_on, draw(running_[i], logits.subspan(i * stride, stride)));
    running_[i].ended = !goes_on;
  }
  retire([](const Choice& choice) { return choice.ended; });
  return {};
}

void Generation::retire(const std::function<bool(const Choice&)>& leaves) {
  std::erase_if(running_, [&](const Choice& choice) {
    if (!leaves(choice)) return false;
    runner_.close(choice.row);
    return true;
  });
}

Result<bool> Generation::draw(Choice& choice, std::span<const float> logits) {
  logits = logits.first(static_cast<std::size_t>(request_.vocab));
  const auto output = static_cast<std::int64_t>(choice.tokens.size() - request_.prompt.size());
  std::span<const std::int32_t> banned;
  if (!request_.ignore_eos && output < request_.min_tokens) banned = request_.eos;
  QUERN_ASSIGN(const std::int32_t token,
               sampler_.draw(logits, request_.sampling, {choice.tokens, request_.prompt.size()},
                             {static_cast<std::uint32_t>(choice.index), static_cast<std::uint64_t>(output)}, banned));
  std::optional<sampling::Logprobs> logprobs;
  if (request_.top_logprobs >= 0) {
    QUERN_ASSIGN(logprobs, sampling::logprobs_of(logits, token, request_.top_logprobs));
  }
  choice.tokens.push_back(token);
  sink_.on_token(choice.index, token, std::move(logprobs));
  if (!request_.ignore_eos && std::ranges::find(request_.eos, token) != request_.eos.end()) {
    sink_.on_end(choice.index, EndReason::kEndOfSequence);
    return false;
  }
  if (output + 1 < request_.max_tokens) return true;
  sink_.on_end(choice.index, EndReason::kLength);
  return false;
}

}  // namespace quern::execution
