"""The real binary as a child process: a server that is waited for, or a command run to its end."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("QUERN_BIN", ROOT / "build/release/bin/quern"))
LOAD_SECONDS = 60


def environment(**changes):
    """This process's environment without QUERN_ variables but the home, and with the changes (None takes one away)."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("QUERN_") or k == "QUERN_HOME"}
    kept.update({k: str(v) for k, v in changes.items() if v is not None})
    return {k: v for k, v in kept.items() if not (k in changes and changes[k] is None)}


def run(*arguments, env=None, stdin="", timeout=60):
    """Runs a command to its end: status, standard output and standard error as text."""
    return subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env=env or environment(), check=False)


def starter_path():
    """Where the starter lies in the home of this run. Without it there is nothing to test: `quern get starter`."""
    for model in json.loads(run("ls", "--json").stdout):
        if model["name"] == "SmolLM2-135M-Instruct.Q4_1":
            assert "error" not in model, model
            return Path(model["path"])
    raise RuntimeError("the starter isn't in the home: run `quern get starter`")


class Server:
    """`quern serve` on a free port. Its output is read all the time, so that it never blocks on a full pipe."""

    def __init__(self, *arguments, env=None, wait=True):
        self.process = subprocess.Popen([BINARY, "serve", "--port", "0", *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env or environment())
        self.errors = []
        self._ready = queue.Queue()
        self._threads = [threading.Thread(target=self._read_output, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()
        self.url = self.wait_until_ready() if wait else None

    def _read_output(self):
        for line in self.process.stdout:
            if found := re.match(r"ready: (http://\S+) serves (\S+)", line):
                self._ready.put(found.groups())
        self._ready.put(None)

    def _read_errors(self):
        self.errors.extend(self.process.stderr)

    def wait_until_ready(self):
        ready = self._ready.get(timeout=LOAD_SECONDS)
        if ready is None:
            self.process.wait()
            raise RuntimeError(f"quern serve ended with {self.process.returncode}: {self.error_text()}")
        self.url, self.model = ready
        return self.url

    def error_text(self):
        self._threads[1].join(timeout=10)
        return "".join(self.errors)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=30):
        return self.process.wait(timeout=timeout)

    def close(self):
        """The clean end; gives the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
