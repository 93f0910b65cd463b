// The connection's coroutine, and the reads and writes that it waits for.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "quern/base/log.h"
#include "quern/server/internal/connection.h"

namespace quern::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kInputLimit = 65536;  // read ahead of what a request has taken
constexpr std::chrono::milliseconds kLingerTime{1000};

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

bool expects_continue(const HttpRequest& request) {
  return request.version_1_1 && request.header("expect").starts_with("100-");
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ConnectionShared& shared, Closed closed)
    : socket_(std::move(socket)), wake_(socket_.get_executor()), shared_(shared), closed_(std::move(closed)) {}

void Connection::start() {
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->run(); },
      [self = shared_from_this()](const std::exception_ptr& problem) {
        try {
          if (problem) std::rethrow_exception(problem);
        } catch (const std::exception& error) {
          log_error("a connection ended: {}", error.what());
        }
        self->generation_.reset();
        self->close();
        self->closed_(self);
      });
}

void Connection::post(void (Connection::*action)()) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), action] { ((*self).*action)(); });
}

void Connection::drain() {
  post(&Connection::notify);
}
void Connection::cut() {
  post(&Connection::on_cut);
}
void Connection::stop() {
  post(&Connection::on_stop);
}

void Connection::on_cut() {
  cut_ = true;
  notify();
}

void Connection::on_stop() {
  stopping_ = true;
  close();
  notify();
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
}

Connection::Task<void> Connection::wait_until(TimePoint deadline) {
  wake_.expires_at(deadline);
  co_await wake_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Connection::start_read() {
  if (reading_ || end_of_input_ || lost() || input_.size() >= kInputLimit) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(incoming_), [self = shared_from_this()](error_code problem, std::size_t bytes) {
    self->reading_ = false;
    self->input_.append(self->incoming_.data(), bytes);
    if (problem == asio::error::eof) {
      self->end_of_input_ = true;
    } else if (problem) {
      self->gone_ = true;
    }
    self->notify();
  });
}

void Connection::start_write() {
  writing_ = true;
  socket_.async_write_some(asio::buffer(outgoing_) + sent_,
                           [self = shared_from_this()](error_code problem, std::size_t bytes) {
                             self->writing_ = false;
                             self->sent_ += bytes;
                             if (problem) self->gone_ = true;
                             self->notify();
                           });
}

void Connection::watch_for_reset() {
  if (watching_) return;
  watching_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_error, [self = shared_from_this()](error_code problem) {
    if (problem) return;
    self->gone_ = true;
    self->notify();
  });
}

Connection::Task<void> Connection::run() {
  bool again = true;
  while (again && !lost()) again = co_await serve();
  if (!idle_) co_await linger();
}

Connection::Task<bool> Connection::serve() {
  RequestReader reader({shared_.limits.header_bytes, shared_.limits.header_lines, shared_.limits.body_bytes});
  if (!co_await read_head(reader)) co_return false;
  idle_ = false;
  const BusyGuard busy(shared_.busy);
  ResponseForm form = form_of(reader.request());
  if (auto refusal = shared_.api.refuse(reader.request())) {
    form.keep_alive = form.keep_alive && reader.complete();
    co_return co_await respond(std::move(*refusal), std::move(form));
  }
  if (!co_await read_body(reader, form)) co_return false;
  Api::Answer answer = shared_.api.answer(reader.request());
  reader.request().body = {};  // a long generation needn't hold it
  if (auto* plan = std::get_if<GenerationPlan>(&answer)) {
    co_return co_await generate(std::move(*plan), std::move(form));
  }
  co_return co_await respond(std::get<HttpResponse>(std::move(answer)), std::move(form));
}

Connection::Task<bool> Connection::read_head(RequestReader& reader) {
  ResponseForm form;  // for what can't be read
  form.date = shared_.clock.wall_now();
  form.request_id = request_id({});
  const bool fresh = std::exchange(first_, false);  // its time runs from the start, and while draining it may still ask
  TimePoint deadline = now() + (fresh ? shared_.limits.header_time : shared_.limits.idle_time);
  bool begun = fresh;
  idle_ = true;
  while (!reader.has_head()) {
    if (!input_.empty()) {
      if (!begun) deadline = now() + shared_.limits.header_time;
      begun = true;
      const auto taken = reader.feed(input_);
      if (!taken) co_return co_await refuse(taken.error(), std::move(form));
      input_.erase(0, *taken);
      if (reader.has_head()) break;
    }
    const bool drained = !begun && shared_.draining;
    if (lost() || end_of_input_ || drained || now() >= deadline) co_return false;
    start_read();
    co_await wait_until(deadline);
  }
  co_return true;
}

Connection::Task<bool> Connection::read_body(RequestReader& reader, ResponseForm form) {
  if (!reader.complete() && input_.empty() && expects_continue(reader.request())) {
    if (!co_await send("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
  }
  TimePoint deadline = now() + shared_.limits.body_gap;
  while (!reader.complete()) {
    const std::size_t before = input_.size();
    const auto taken = reader.feed(input_);
    if (!taken) co_return co_await refuse(taken.error(), std::move(form));
    input_.erase(0, *taken);
    if (reader.complete()) break;
    if (*taken > 0) deadline = now() + shared_.limits.body_gap;
    if (before >= kInputLimit && *taken == 0) {
      const Error error{ErrorCode::kInvalidRequest, "a chunk's head is too long"};
      co_return co_await refuse(error, std::move(form));
    }
    if (lost() || end_of_input_ || now() >= deadline) co_return false;
    start_read();
    co_await wait_until(deadline);
  }
  co_return true;
}

ResponseForm Connection::form_of(const HttpRequest& request) const {
  return {.request_id = request_id(request),
          .date = shared_.clock.wall_now(),
          .keep_alive = request.keep_alive && !shared_.draining,
          .head_only = request.method == "HEAD",
          .version_1_1 = request.version_1_1};
}

Connection::Task<bool> Connection::refuse(Error error, ResponseForm form) {
  idle_ = false;
  form.keep_alive = false;
  HttpResponse response = error_response(error);
  co_return co_await respond(std::move(response), std::move(form));
}

Connection::Task<bool> Connection::respond(HttpResponse response, ResponseForm form) {
  log_debug("{} {}", form.request_id, response.status);
  std::string bytes = response_bytes(response, form);
  const bool sent = co_await send(std::move(bytes));
  co_return sent&& form.keep_alive;
}

Connection::Task<bool> Connection::generate(GenerationPlan plan, ResponseForm form) {
  // A body is collected whole whatever its size: its events wait only for this strand.
  const std::size_t bound = plan.stream ? shared_.limits.unsent_bytes : SIZE_MAX;
  generation_.emplace(std::move(plan), bound, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->post(&Connection::notify);
  });
  const bool again = co_await relay(std::move(form));
  generation_.reset();  // cancels what still runs
  co_return again;
}

// The loop of a running answer: what has come is sent; when nothing has, it waits for more, for the client's going
// away, or for the time to say something.
Connection::Task<bool> Connection::relay(ResponseForm form) {
  const bool stream = generation_->stream();
  bool opened = false;
  bool asked = false;  // a client that has closed its side, whether it still listens
  TimePoint last_sent = now();
  std::optional<TimePoint> input_ended;
  for (;;) {
    if (lost() || generation_->channel().overflowed()) {
      log_debug("{} 499 the client went away or doesn't read", form.request_id);
      co_return false;
    }
    Generation::Output output =
        cut_ ? generation_->fail({ErrorCode::kServerClosing, "the server is closing"}) : generation_->poll();
    if (cut_) form.keep_alive = false;
    if (output.refused) {
      HttpResponse response = error_response(*output.refused);
      co_return co_await respond(std::move(response), std::move(form));
    }
    if (!stream && output.ended) {
      HttpResponse response{.status = 200, .body = std::move(output.bytes)};
      co_return co_await respond(std::move(response), std::move(form));
    }

    std::string bytes;
    if (stream && output.open) {
      if (!opened) bytes = stream_head(form);
      opened = true;
      bytes += stream_piece(output.bytes, form);
      if (output.ended) bytes += stream_end(form);
    }
    TimePoint deadline = opened ? last_sent + shared_.limits.silence : TimePoint::max();
    if (end_of_input_ && !asked) {
      if (!input_ended) input_ended = now();
      deadline = std::min(deadline, *input_ended + shared_.limits.half_closed);
    }
    if (bytes.empty() && now() >= deadline) {
      bytes = question(form, opened);
      asked = asked || input_ended;
      if (asked) watch_for_reset();
    }
    if (!bytes.empty()) {
      if (!co_await send(std::move(bytes))) co_return false;
      last_sent = now();
      if (output.ended) co_return form.keep_alive;
      continue;
    }
    start_read();
    co_await wait_until(deadline);
  }
}

std::string Connection::question(const ResponseForm& form, bool opened) {
  if (opened) return stream_piece(wire::kStreamComment, form);
  return form.version_1_1 ? "HTTP/1.1 100 Continue\r\n\r\n" : "";
}

Connection::Task<bool> Connection::send(std::string bytes) {
  outgoing_ = std::move(bytes);
  sent_ = 0;
  if (generation_) generation_->channel().set_writing(true);
  while (sent_ < outgoing_.size() && !lost()) {
    start_write();
    const TimePoint deadline = now() + shared_.limits.unsent_time;
    while (writing_) {
      const bool full = generation_ && generation_->channel().overflowed();
      if (full || now() >= deadline) {
        gone_ = true;
        close();  // ends the write
      }
      co_await wait_until(gone_ ? TimePoint::max() : deadline);
    }
  }
  if (generation_) generation_->channel().set_writing(false);
  outgoing_ = {};
  co_return !lost();
}

// A socket that is closed with input unread resets, and the client may lose the answer: it gets a moment to read it.
Connection::Task<void> Connection::linger() {
  if (lost()) co_return;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  const TimePoint deadline = now() + kLingerTime;
  while (!lost() && !end_of_input_ && now() < deadline) {
    input_.clear();
    start_read();
    co_await wait_until(deadline);
  }
}

}  // namespace quern::server
