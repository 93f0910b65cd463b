// The log front: one line an event, to stderr. Never prompt or output text.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace quern {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Lines below `level` are dropped. Thread-safe.
void set_log_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);
/// Writes one line. Thread-safe; never throws.
void log_line(LogLevel level, std::string_view line) noexcept;

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace quern
