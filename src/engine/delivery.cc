// Events out of what happened; counts are those that the client saw.
#include "quern/engine/delivery.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "quern/base/check.h"
#include "quern/base/log.h"

namespace quern::engine {
namespace {

constexpr std::size_t kQueueLimit = 1024;

}  // namespace

Delivery::Delivery(const text::Tokenizer& tokenizer)
    : tokenizer_(tokenizer), queue_(kQueueLimit), thread_("quern-delivery", [this] { run(); }) {}

Delivery::~Delivery() {
  close();
}

void Delivery::post(std::shared_ptr<Reply> reply, Happening happening) {
  QUERN_CHECK(queue_.push({std::move(reply), std::move(happening)}));
}

void Delivery::close() {
  queue_.close();
  thread_.join();
}

void Delivery::run() {
  while (auto item = queue_.pop()) deliver(*item->reply, item->happening);
}

void Delivery::deliver(Reply& reply, Happening& happening) {
  if (reply.ended) return;
  try {
    std::visit([&](auto& one) { handle(reply, one); }, happening);
  } catch (const std::exception& exception) {
    log_error("a reply failed on its way to text: {}", exception.what());
    reply.give_up();
    end(reply, ReplyFailed{{ErrorCode::kInternal, "the reply could not be made into text"}});
  }
}

void Delivery::handle(Reply& reply, Admitted&) {
  for (std::int32_t i = 0; i < reply.options.n; ++i) {
    reply.choices.push_back({ChoiceText(tokenizer_, reply.options.stops, reply.options.min_tokens)});
  }
  emit(reply, ReplyStarted{std::ssize(reply.prompt_tokens)});
}

void Delivery::handle(Reply& reply, PromptEvaluated& evaluated) {
  if (reply.is_chat()) return;
  std::optional<std::vector<sampling::Logprobs>> logprobs;
  if (reply.options.top_logprobs >= 0) logprobs = std::move(evaluated.logprobs);
  for (std::int32_t i = 0; i < reply.options.n; ++i) {
    ChoiceText& text = reply.choices[static_cast<std::size_t>(i)].text;
    if (reply.options.echo) {
      show(reply, i, text.echo(reply.prompt_tokens, logprobs));
    } else {
      text.follow(reply.prompt_tokens);
    }
  }
}

void Delivery::handle(Reply& reply, TokenDrawn& drawn) {
  Reply::ChoiceState& choice = reply.choices[static_cast<std::size_t>(drawn.choice)];
  if (choice.finished) return;  // drawn before the engine saw that the choice had been stopped
  ++reply.generated_tokens;
  ++generated_tokens_;
  if (!reply.first_token) reply.first_token = drawn.at;
  reply.last_token = drawn.at;
  const auto eos = tokenizer_.eos_set();
  if (!reply.options.ignore_eos && std::ranges::find(eos, drawn.token) != eos.end()) return;  // counted, not shown
  ChoiceText::Piece piece = choice.text.push(drawn.token, drawn.logprobs);
  const bool stopped = piece.stopped;
  show(reply, drawn.choice, std::move(piece));
  if (!stopped) return;
  reply.stop_choice(drawn.choice);
  finish_choice(reply, drawn.choice, FinishReason::kStop);
}

void Delivery::handle(Reply& reply, ChoiceEnded& ended) {
  Reply::ChoiceState& choice = reply.choices[static_cast<std::size_t>(ended.choice)];
  if (choice.finished) return;
  show(reply, ended.choice, choice.text.finish());
  finish_choice(reply, ended.choice, ended.reason);
}

void Delivery::handle(Reply& reply, GenerationEnded& generation) {
  GenerateStats stats;
  stats.prompt_tokens = std::ssize(reply.prompt_tokens);
  stats.cached_tokens = generation.cached_tokens;
  stats.generated_tokens = reply.generated_tokens;
  stats.queue_ms = elapsed_ms(reply.submitted, generation.started);
  stats.prefill_ms = elapsed_ms(generation.started, reply.first_token.value_or(generation.prompt_done));
  if (reply.first_token) stats.decode_ms = elapsed_ms(*reply.first_token, reply.last_token);
  end(reply, ReplyDone{stats});
}

void Delivery::handle(Reply& reply, Failed& failed) {
  end(reply, ReplyFailed{std::move(failed.error)});
}

void Delivery::show(Reply& reply, std::int32_t choice, ChoiceText::Piece piece) {
  if (piece.empty()) return;
  emit(reply, TextDelta{choice, std::move(piece.text), std::move(piece.logprobs)});
}

void Delivery::finish_choice(Reply& reply, std::int32_t choice, FinishReason reason) {
  reply.choices[static_cast<std::size_t>(choice)].finished = true;
  emit(reply, ChoiceFinished{choice, reason});
}

void Delivery::emit(Reply& reply, ReplyEvent event) {
  if (!reply.sink) return;
  try {
    reply.sink(std::move(event));
  } catch (...) {
    log_error("a reply's sink threw: its request ends");
    reply.sink = nullptr;
    reply.give_up();
  }
}

void Delivery::end(Reply& reply, ReplyEvent event) {
  reply.ended = true;
  ++finished_requests_;
  emit(reply, std::move(event));
  reply.sink = nullptr;
}

}  // namespace quern::engine
