// terminal_text: nothing that drives a terminal goes through.
#include "terminal.h"

#include <gtest/gtest.h>

namespace quern::app {
namespace {

TEST(TerminalText, LeavesTextAlone) {
  const std::string text = "plain\ttext,\nüñî, 漢字, 👩‍💻 e\u0301";
  EXPECT_EQ(terminal_text(text), text);
}

TEST(TerminalText, MakesControlsVisible) {
  EXPECT_EQ(terminal_text("\x1b]0;title\x07"), "^[]0;title^G");
  EXPECT_EQ(terminal_text("a\rb\x7f"), "a^Mb^?");
  EXPECT_EQ(terminal_text(std::string_view("\0", 1)), "^@");
  EXPECT_EQ(terminal_text("\u009b31m"), "\ufffd31m");
  EXPECT_EQ(terminal_text("\u202eabc\u2066"), "\ufffdabc\ufffd");
}

TEST(TerminalText, NoByteBelowSpaceEverGoesThrough) {
  for (int c = 0; c < 256; ++c) {
    for (const char shown : terminal_text(std::string(1, static_cast<char>(c)))) {
      const auto byte = static_cast<unsigned char>(shown);
      EXPECT_TRUE((byte >= 0x20 && byte != 0x7f) || shown == '\n' || shown == '\t') << c;
    }
  }
}

}  // namespace
}  // namespace quern::app
