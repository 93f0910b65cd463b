// SignalWatch over signalfd.
#include "quern/os/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "quern/os/system_reason.h"

namespace quern::os {

Result<SignalWatch> SignalWatch::make() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  Descriptor signals(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC));
  if (signals.valid() && wake.valid()) return SignalWatch(std::move(signals), std::move(wake));
  return fail(ErrorCode::kIo, "can't watch signals: {}", system_reason(errno));
}

std::optional<int> SignalWatch::wait() {
  for (;;) {
    std::array<pollfd, 2> events = {{{signals_.value(), POLLIN, 0}, {wake_.value(), POLLIN, 0}}};
    if (::poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) return std::nullopt;
    signalfd_siginfo info = {};
    if (::read(signals_.value(), &info, sizeof info) == sizeof info) return static_cast<int>(info.ssi_signo);
  }
}

void SignalWatch::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.value(), &one, sizeof one);
}

}  // namespace quern::os
