// LineReader: what a person types, with editing and history on a terminal; plain lines elsewhere.
#pragma once

#include <memory>
#include <string>

#include "quern/base/result.h"

namespace quern::app {

/// Reads standard input. One a process; read() is for one thread, interrupt() for any.
class LineReader {
 public:
  enum class Read : std::uint8_t { kLine, kInterrupted, kEnd };

  /// Edits with libedit when `terminal`, which wants standard input and output to be one.
  explicit LineReader(bool terminal);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  /// Shows `prompt` (on a terminal) and reads a line, without its end, into `line`.
  [[nodiscard]] Read read(const std::string& prompt, std::string& line);
  /// Ends the read under way, or the next one, with kInterrupted.
  void interrupt();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace quern::app
