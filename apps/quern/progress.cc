// Drawing progress.
#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace quern::app {
namespace {

constexpr double kBarIntervalMs = 100.0;
constexpr double kLineIntervalMs = 2000.0;
constexpr int kBarWidth = 30;
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string what, bool terminal, const Clock& clock)
    : what_(std::move(what)), terminal_(terminal), clock_(clock), begin_(clock.now()), shown_(begin_) {
  if (!terminal_) fmt::print(stderr, "{} ...\n", what_);
}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "{}", kClearLine);
}

void Progress::update(double share) {
  const auto now = clock_.now();
  if (elapsed_ms(shown_, now) < (terminal_ ? kBarIntervalMs : kLineIntervalMs)) return;
  shown_ = now;
  const double part = std::clamp(share, 0.0, 1.0);
  if (terminal_) {
    const int filled = static_cast<int>(part * kBarWidth);
    fmt::print(stderr, "{}{} [{:#<{}}{:<{}}] {:3.0f} %", kClearLine, what_, "", filled, "", kBarWidth - filled,
               part * 100.0);
    std::fflush(stderr);
    drawn_ = true;
  } else {
    fmt::print(stderr, "{}: {:.0f} %\n", what_, part * 100.0);
  }
}

void Progress::finish() {
  fmt::print(stderr, "{}{}: {:.1f} s\n", drawn_ ? kClearLine : "", what_, elapsed_ms(begin_, clock_.now()) / 1000.0);
  drawn_ = false;
}

}  // namespace quern::app
