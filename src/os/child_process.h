// Child processes: run a program to its end.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"

namespace quern::os {

/// A program to run. It reads an empty input, leads a process group of its own and has no signal blocked.
struct ChildCommand {
  std::vector<std::string> argv;                                      // argv[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  // beside this process's own
  /// Given each line of its output and error output, without the line's end, on the calling thread. Empty: both go to
  /// this process's standard error.
  std::function<void(std::string_view line)> on_line = {};
};

struct ChildExit {
  int status = 0;  // exit status
  int signal = 0;  // the signal that ended it, else 0

  [[nodiscard]] bool ok() const { return status == 0 && signal == 0; }
};

/// Runs until it has exited and its captured output is drained. On cancellation its group gets SIGTERM, SIGKILL 3 s
/// later, and once it is gone the token's reason is the error. kNotFound when there is no such program, kIo for what
/// else the system refuses.
[[nodiscard]] Result<ChildExit> run_child(const ChildCommand& command, const CancellationToken& cancellation = {});

}  // namespace quern::os
