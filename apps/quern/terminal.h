// What may be written to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace quern::app {

/// Whole UTF-8 characters with every control character but newline and tab made visible (ESC becomes ^[, a C1 control
/// U+FFFD, and so do the characters that reorder text), so that what a model writes can't drive the terminal.
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace quern::app
