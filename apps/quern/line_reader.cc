// LineReader over libedit, with input that a descriptor can interrupt.
#include "line_reader.h"

#include <histedit.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <optional>

#include "quern/base/check.h"
#include "quern/os/descriptor.h"

namespace quern::app {
namespace {

constexpr int kHistoryLines = 1000;

/// Bytes of standard input, one at a time, until an interruption.
class Input {
 public:
  Input() : wake_(::eventfd(0, EFD_CLOEXEC)) { QUERN_CHECK(wake_.valid()); }

  /// Nothing at the end of the input, or when interrupted.
  std::optional<char> next() {
    for (;;) {
      std::array<pollfd, 2> events = {{{STDIN_FILENO, POLLIN, 0}, {wake_.value(), POLLIN, 0}}};
      if (::poll(events.data(), events.size(), -1) < 0) continue;
      if (events[1].revents != 0) {
        std::uint64_t count = 0;
        interrupted_ = ::read(wake_.value(), &count, sizeof count) > 0;
        return std::nullopt;
      }
      char byte = 0;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got == 1) return byte;
      if (got < 0 && errno == EINTR) continue;
      return std::nullopt;
    }
  }
  void interrupt() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.value(), &one, sizeof one);
  }
  /// Whether an interruption ended the last read; forgets it.
  bool take_interruption() { return std::exchange(interrupted_, false); }

 private:
  os::Descriptor wake_;
  bool interrupted_ = false;
};

/// libedit wants a locale that knows UTF-8.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");  // NOLINT(concurrency-mt-unsafe): nothing else in the process looks at the locale
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

class LineReader::Implementation {
 public:
  explicit Implementation(bool terminal) {
    if (!terminal) return;
    use_utf8();
    editor_ = el_init("quern", stdin, stdout, stderr);
    history_ = history_init();
    QUERN_CHECK(editor_ != nullptr && history_ != nullptr);
    HistEvent event = {};
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &Implementation::give_prompt);
    el_set(editor_, EL_GETCFN, &Implementation::give_character);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_SIGNAL, 0);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;
  ~Implementation() {
    if (history_ != nullptr) history_end(history_);
    if (editor_ != nullptr) el_end(editor_);
  }

  Read read(const std::string& prompt, std::string& line) {
    line.clear();
    const bool got = editor_ != nullptr ? read_edited(prompt, line) : read_plain(line);
    if (input_.take_interruption()) return Read::kInterrupted;
    return got ? Read::kLine : Read::kEnd;
  }
  void interrupt() { input_.interrupt(); }

 private:
  static Implementation& self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Implementation*>(data);
  }
  static char* give_prompt(EditLine* editor) { return self(editor).prompt_.data(); }
  /// One whole character. 0 ends the read.
  static int give_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state = {};
    while (const auto byte = self(editor).input_.next()) {
      const std::size_t length = std::mbrtowc(character, &*byte, 1, &state);
      if (length == static_cast<std::size_t>(-2)) continue;  // more of it follows
      if (length != static_cast<std::size_t>(-1)) return 1;
      state = {};
    }
    return 0;
  }

  bool read_edited(const std::string& prompt, std::string& line) {
    prompt_ = prompt;
    el_set(editor_, EL_PREP_TERM, 1);  // before the prompt shows, or what is typed at once meets the wrong mode
    int length = 0;
    const char* const typed = el_gets(editor_, &length);
    if (typed == nullptr || length <= 0) {
      el_reset(editor_);
      return false;
    }
    line.assign(typed, static_cast<std::size_t>(length));
    HistEvent event = {};
    if (line != "\n") history(history_, &event, H_ENTER, line.c_str());
    if (line.ends_with('\n')) line.pop_back();
    return true;
  }
  bool read_plain(std::string& line) {
    while (const auto byte = input_.next()) {
      if (*byte == '\n') return true;
      line += *byte;
    }
    return !line.empty();
  }

  Input input_;
  EditLine* editor_ = nullptr;  // null: plain lines
  History* history_ = nullptr;
  std::string prompt_;
};

LineReader::LineReader(bool terminal) : implementation_(std::make_unique<Implementation>(terminal)) {}
LineReader::~LineReader() = default;

LineReader::Read LineReader::read(const std::string& prompt, std::string& line) {
  return implementation_->read(prompt, line);
}

void LineReader::interrupt() {
  implementation_->interrupt();
}

}  // namespace quern::app
