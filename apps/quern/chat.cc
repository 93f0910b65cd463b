// quern chat: a conversation in the terminal.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "commands.h"
#include "conversation.h"
#include "interrupt.h"
#include "line_reader.h"
#include "loading.h"
#include "models.h"
#include "reply.h"
#include "terminal.h"

namespace quern::app {
namespace {

constexpr std::string_view kHelp =
    "/reset         start over, with the same system message\n"
    "/system TEXT   set the system message and start over; without TEXT: show it\n"
    "/help          show this\n"
    "/exit          leave (Ctrl-D does too)\n"
    "Ctrl-C stops an answer and keeps the chat.\n";

/// What a signal means now: SIGINT stops what is being done (loading, an answer, a line being typed), SIGTERM ends the
/// chat. Shared by main, which gets the signals, and the chat's thread.
class Interrupts {
 public:
  explicit Interrupts(LineReader& reader) : reader_(reader) {}

  void on_signal(int signal) {
    const std::scoped_lock lock(mutex_);
    ending_ |= signal == SIGTERM;
    if (work_) {
      work_->cancel({ErrorCode::kCancelled, "interrupted"});
    }
    if (!work_ || ending_) reader_.interrupt();
  }
  /// From now on a signal cancels the token that is returned.
  CancellationToken begin_work() {
    const std::scoped_lock lock(mutex_);
    work_.emplace();
    if (ending_) work_->cancel();
    return work_->token();
  }
  void end_work() {
    const std::scoped_lock lock(mutex_);
    work_.reset();
  }
  [[nodiscard]] bool ending() const {
    const std::scoped_lock lock(mutex_);
    return ending_;
  }

 private:
  LineReader& reader_;
  mutable std::mutex mutex_;
  std::optional<CancellationSource> work_;
  bool ending_ = false;
};

class Chat {
 public:
  Chat(const Options& options, engine::Engine& engine, LineReader& reader, Interrupts& interrupts, bool terminal)
      : options_(options),
        engine_(engine),
        reader_(reader),
        interrupts_(interrupts),
        terminal_(terminal),
        conversation_(options.system) {}

  Result<int> run() {
    if (terminal_) fmt::print("chat with {}; /help lists the commands\n", engine_.info().id);
    std::string line;
    bool interrupted_before = false;
    while (!interrupts_.ending()) {
      const auto read = reader_.read("> ", line);
      if (read == LineReader::Read::kEnd) break;
      if (read == LineReader::Read::kInterrupted) {
        if (interrupted_before || !terminal_) break;
        interrupted_before = true;
        if (!interrupts_.ending()) fmt::print("\n(Ctrl-C again or Ctrl-D leaves)\n");
        continue;
      }
      interrupted_before = false;
      if (line == "/exit") break;
      if (line.starts_with('/')) {
        command(line);
      } else if (line.find_first_not_of(" \t") != std::string::npos) {
        QUERN_TRY(answer(line));
      }
      std::fflush(stdout);
    }
    if (terminal_) fmt::print("\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  void command(const std::string& line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const std::string argument = line.substr(std::min(space + 1, line.size()));
    if (name == "/reset") {
      conversation_.restart(conversation_.system());
      say("the chat starts over");
    } else if (name == "/system" && argument.empty()) {
      say(conversation_.system().empty() ? "no system message" : "system message: " + conversation_.system());
    } else if (name == "/system") {
      conversation_.restart(argument);
      say("the system message is set, and the chat starts over");
    } else if (name == "/help") {
      fmt::print("{}", kHelp);
    } else {
      say("no command " + name + "; /help lists them");
    }
  }

  /// Fails only where going on makes no sense.
  Result<void> answer(const std::string& line) {
    conversation_.add("user", line);
    std::string text;
    const auto outcome =
        read_reply(engine_, engine::ChatRequest{conversation_.input(), generate_options(options_, engine_)},
                   interrupts_.begin_work(), [&](std::string_view piece) {
                     text += piece;
                     fmt::print("{}", terminal_ ? terminal_text(piece) : piece);
                     std::fflush(stdout);
                   });
    interrupts_.end_work();
    if (!text.empty() || outcome) fmt::print("\n");
    const bool stopped = !outcome && outcome.error().code == ErrorCode::kCancelled;
    if (!outcome && !stopped) {
      conversation_.drop_last();
      return explain(outcome.error());
    }
    conversation_.add("assistant", text);
    if (stopped) {
      say("(stopped)");
    } else {
      after_answer(*outcome);
    }
    return {};
  }

  void after_answer(const ReplyOutcome& outcome) {
    const std::int64_t used = outcome.stats.prompt_tokens + outcome.stats.generated_tokens;
    if (terminal_) say(fmt::format("[{}, context {} of {}]", describe(outcome.stats), used, engine_.info().context));
    if (outcome.reason != engine::FinishReason::kLength) return;
    if (used >= engine_.info().context) {
      say("(cut: the context is full; /reset starts over)");
    } else {
      say("(cut at --max-tokens)");
    }
  }

  Result<void> explain(const Error& error) {
    if (error.code != ErrorCode::kContextLengthExceeded || !terminal_) return fail(error);
    say(error.message + "; /reset starts over");
    return {};
  }

  /// A line that isn't the model's.
  void say(std::string_view text) const {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", terminal_text(text));
  }

  const Options& options_;
  engine::Engine& engine_;
  LineReader& reader_;
  Interrupts& interrupts_;
  const bool terminal_;
  Conversation conversation_;
};

bool on_a_terminal() {
  const char* const kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nothing changes the environment
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && kind != nullptr &&
         std::string_view(kind) != "dumb";
}

}  // namespace

Result<int> run_chat(const Options& options, const std::vector<std::string>& arguments) {
  QUERN_ASSIGN(const ModelChoice model,
               find_model(store::Home(options.home), arguments.empty() ? std::string() : arguments.front()));
  const bool terminal = on_a_terminal();
  LineReader reader(terminal);
  Interrupts interrupts(reader);
  const auto chat = [&]() -> Result<int> {
    auto engine = load_engine(options, model, interrupts.begin_work());
    interrupts.end_work();
    if (!engine) return fail(engine.error());
    if (!(*engine)->info().has_chat_template) {
      return fail(ErrorCode::kUnsupportedFormat,
                  "{} has no chat template: name one with --chat-template, or use `quern generate`", model.name);
    }
    return Chat(options, **engine, reader, interrupts, terminal).run();
  };
  return run_watched(chat, [&](int signal) { interrupts.on_signal(signal); });
}

}  // namespace quern::app
