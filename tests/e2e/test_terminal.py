"""quern chat as a person sees it, in a pseudo-terminal, and with plain input."""

import os
import pty
import re
import select
import subprocess
import time

import pytest
from quern_process import BINARY, environment, run

PROMPT = "> "
CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A command in a pseudo-terminal. What it wrote is looked at through wait_for()."""

    def __init__(self, *arguments):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([BINARY, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=_take_terminal,
                                        env=environment(TERM="xterm", LANG="C.UTF-8", LC_ALL=None))
        os.close(slave)
        self.raw = b""
        self._seen = 0

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern, seconds=30):
        """Reads until the pattern comes after what was waited for before; gives the text up to its end."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.raw[self._seen:].decode(errors="replace")
            if found := re.search(pattern, text):
                self._seen += len(text[:found.end()].encode())
                return text[:found.end()]
            if time.monotonic() > deadline or not self._read(deadline):
                raise AssertionError(f"no {pattern!r} in {text!r}")

    def _read(self, deadline):
        if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
            return False
        try:
            piece = os.read(self.master, 4096)
        except OSError:
            return False  # the other side is closed
        self.raw += piece
        return bool(piece)

    def wait(self):
        while self._read(time.monotonic() + 20):
            pass
        return self.process.wait(timeout=20)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def _take_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def chat(starter):
    terminal = Terminal("chat", starter, "--temperature", "0", "--max-tokens", "400")
    terminal.wait_for(r"/help lists the commands")
    terminal.wait_for(PROMPT)
    yield terminal
    terminal.close()


def test_answers_and_remembers(chat):
    chat.type("Tell me the capital of France.\r")
    assert "Paris" in chat.wait_for(r"\[\d+ tokens.*context \d+ of 8192\]")
    first = _used(chat)
    chat.wait_for(PROMPT)
    chat.type("And of Italy?\r")
    chat.wait_for(r"\[\d+ tokens.*context \d+ of 8192\]")
    assert _used(chat) > first, "the first turn is part of the second prompt"
    chat.wait_for(PROMPT)
    chat.type("/reset\r")
    chat.wait_for("starts over")
    chat.wait_for(PROMPT)
    chat.type("Tell me the capital of France.\r")
    chat.wait_for(r"\[\d+ tokens.*context \d+ of 8192\]")
    assert _used(chat) == first, "nothing is remembered"
    chat.wait_for(PROMPT)
    chat.type(CTRL_D)
    assert chat.wait() == 0


def _used(chat):
    return int(re.findall(r"context (\d+) of", chat.raw.decode(errors="replace"))[-1])


def test_ctrl_c_stops_the_answer_and_keeps_the_chat(chat):
    chat.type("Write a very long story about a king.\r")
    chat.wait_for("king.\r\n")
    chat.wait_for(r"\w+ \w+ \w+")
    chat.type(CTRL_C)
    chat.wait_for(r"\(stopped\)", seconds=10)
    chat.wait_for(PROMPT)
    chat.type("/help\r")
    chat.wait_for("start over")
    chat.wait_for(PROMPT)
    chat.type(CTRL_C)
    chat.wait_for(r"Ctrl-C again")
    chat.wait_for(PROMPT)
    chat.type(CTRL_C)
    assert chat.wait() == 0


def test_commands(chat):
    chat.type("/system\r")
    chat.wait_for("no system message")
    chat.type("/system Answer in capitals.\r")
    chat.wait_for("the system message is set")
    chat.type("/system\r")
    chat.wait_for("system message: Answer in capitals.")
    chat.type("/what\r")
    chat.wait_for("no command /what")
    chat.type("/exit\r")
    assert chat.wait() == 0


def test_a_line_can_be_edited_and_called_back(chat):
    chat.type("/systemx\x7f\x1b[D\x1b[Ds\x1b[C\x7f\x15/syst\u00e9\x7fem\r")  # backspace, arrows, kill, a two-byte letter
    chat.wait_for("no system message")
    chat.wait_for(PROMPT)
    chat.type("\x1b[A\r")  # the last line again
    chat.wait_for("no system message")
    chat.type("/exit\r")
    assert chat.wait() == 0


def test_a_full_context_is_said(starter):
    terminal = Terminal("chat", starter, "--temperature", "0", "--context", "64")
    try:
        terminal.wait_for(r"the model's own is 8192")
        terminal.wait_for(PROMPT)
        terminal.type("Write a very long story about a king.\r")
        terminal.wait_for(r"context is full; /reset")
        terminal.wait_for(PROMPT)
        terminal.type("Go on.\r")
        terminal.wait_for(r"64.*/reset starts over")
        terminal.wait_for(PROMPT)
        terminal.type("/reset\r")
        terminal.wait_for("starts over")
        terminal.wait_for(PROMPT)
        terminal.type("Hi\r")
        terminal.wait_for(r"\[\d+ tokens")
    finally:
        terminal.close()


def test_ctrl_c_while_loading_ends_it():
    terminal = Terminal("chat", "synthetic:llama-1b")
    try:
        terminal.wait_for("loading synthetic:llama-1b")
        terminal.type(CTRL_C)
        assert terminal.wait() == 1
        assert b"quern: interrupted" in terminal.raw
    finally:
        terminal.close()


def test_plain_input_gives_plain_answers(starter):
    result = run("chat", starter, "--temperature", 0, "--max-tokens", 24,
                 stdin="Tell me the capital of France.\nAnd what is it famous for?\n")
    assert result.returncode == 0, result.stderr
    assert "Paris" in result.stdout
    assert PROMPT not in result.stdout and "\x1b" not in result.stdout
    alone = run("chat", starter, "--temperature", 0, "--max-tokens", 24, stdin="Tell me the capital of France.")
    assert result.stdout.startswith(alone.stdout)
    assert len(result.stdout) > len(alone.stdout)
