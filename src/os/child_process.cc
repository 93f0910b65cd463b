// run_child over posix_spawn and a process descriptor.
#include "quern/os/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "quern/os/descriptor.h"
#include "quern/os/system_reason.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace quern::os {
namespace {

constexpr int kKillAfterMs = 3000;

/// Splits what arrives into lines.
class LineSplitter {
 public:
  explicit LineSplitter(const std::function<void(std::string_view)>& on_line) : on_line_(on_line) {}
  void push(std::string_view piece) {
    held_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = held_.find('\n'); end != std::string::npos; end = held_.find('\n', begin)) {
      on_line_(std::string_view(held_).substr(begin, end - begin));
      begin = end + 1;
    }
    held_.erase(0, begin);
  }
  void finish() {
    if (!held_.empty()) on_line_(held_);
    held_.clear();
  }

 private:
  const std::function<void(std::string_view)>& on_line_;
  std::string held_;
};

std::vector<std::string> merged_environment(const ChildCommand& command) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : command.environment) replaced |= text.starts_with(name + "=");
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Starts the program; its output goes to descriptor `output`.
Result<pid_t> spawn(const ChildCommand& command, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  const auto environment = merged_environment(command);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, command.argv.front().c_str(), &actions, &attributes,
                                 pointers(command.argv).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "can't run {}: {}", command.argv.front(),
              system_reason(error));
}

/// Reads what has come. False at the end of the output.
bool drain(int descriptor, LineSplitter& lines) {
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(descriptor, chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  lines.push({chunk.data(), static_cast<std::size_t>(got)});
  return got > 0;
}

ChildExit reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? ChildExit{0, WTERMSIG(status)} : ChildExit{WEXITSTATUS(status), 0};
}

}  // namespace

Result<ChildExit> run_child(const ChildCommand& command, const CancellationToken& cancellation) {
  std::array<int, 2> pipe_ends = {-1, -1};
  if (command.on_line && ::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::kIo, "pipe: {}", system_reason(errno));
  Descriptor output(pipe_ends[0]);
  Descriptor childs_end(pipe_ends[1]);
  const Descriptor wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return fail(ErrorCode::kIo, "eventfd: {}", system_reason(errno));

  QUERN_ASSIGN(const pid_t pid, spawn(command, childs_end.valid() ? childs_end.value() : STDERR_FILENO));
  childs_end.reset();
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    reap(pid);
    return fail(ErrorCode::kIo, "pidfd_open: {}", system_reason(error));
  }
  const auto subscription = cancellation.subscribe([&wake](const Error&) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.value(), &one, sizeof one);
  });

  LineSplitter lines(command.on_line);
  bool running = true;
  bool asked_to_end = false;
  while (running || (output.valid() && !asked_to_end)) {
    std::array<pollfd, 3> events = {{{running ? process.value() : -1, POLLIN, 0},
                                     {output.value(), POLLIN, 0},
                                     {asked_to_end ? -1 : wake.value(), POLLIN, 0}}};
    const int ready = ::poll(events.data(), events.size(), asked_to_end ? kKillAfterMs : -1);
    if (ready == 0) ::kill(-pid, SIGKILL);
    if (ready <= 0) continue;
    if (events[0].revents != 0) running = false;
    if (events[1].revents != 0 && !drain(output.value(), lines)) output.reset();
    if (events[2].revents != 0) {
      asked_to_end = true;
      ::kill(-pid, SIGTERM);
    }
  }
  if (asked_to_end) ::kill(-pid, SIGKILL);  // what the program may have left of its group; it isn't reaped yet
  const ChildExit exit = reap(pid);
  if (command.on_line) lines.finish();
  if (asked_to_end) return fail(*cancellation.reason());
  return exit;
}

}  // namespace quern::os
