"""Starting and ending a server."""

import signal
import socket
import threading
import time

import httpx
import pytest
from quern_process import LOAD_SECONDS, Server, environment, run

ENDLESS = {"prompt": "Once upon a time", "max_tokens": 8000, "ignore_eos": True, "stream": True}


class Stream:
    """A streamed completion read on a thread of its own: its data lines, and when the first has come."""

    def __init__(self, url, body):
        self.lines = []
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._read, args=(url, body))
        self.thread.start()
        assert self.begun.wait(30)

    def _read(self, url, body):
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=60) as reply:
            for line in reply.iter_lines():
                if line.startswith("data: "):
                    self.lines.append(line.removeprefix("data: "))
                    self.begun.set()

    def finish(self):
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()
        return self.lines


def test_sigterm_lets_running_streams_finish(starter):
    server = Server(starter)
    expected = httpx.post(f"{server.url}/v1/completions", timeout=60, json={
        "prompt": "Once upon a time", "max_tokens": 60, "ignore_eos": True, "temperature": 0}).json()["choices"][0]["text"]
    stream = Stream(server.url, ENDLESS | {"max_tokens": 60, "temperature": 0})
    server.signal(signal.SIGTERM)
    lines = stream.finish()
    assert lines[-1] == "[DONE]"
    assert "".join(_text(line) for line in lines[:-1]) == expected
    assert server.wait() == 0, server.error_text()


def _text(line):
    import json

    return "".join(choice["text"] for choice in json.loads(line)["choices"])


def test_while_draining_new_work_is_refused_and_health_answers(starter):
    server = Server(starter)
    stream = Stream(server.url, ENDLESS)
    with httpx.Client(base_url=server.url, timeout=30) as http:
        server.signal(signal.SIGTERM)
        deadline = time.monotonic() + 10
        while http.get("/ready").status_code == 200 and time.monotonic() < deadline:
            pass
        assert http.get("/ready").status_code == 503
        assert http.get("/health").status_code == 200
        refused = http.post("/v1/completions", json={"prompt": "x", "max_tokens": 1})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "server_closing"
    server.signal(signal.SIGTERM)  # the second one forces
    assert server.wait(timeout=10) == 0, server.error_text()
    lines = stream.finish()
    assert "server_closing" in lines[-1], "a cut stream ends with an error frame"
    assert "[DONE]" not in lines


def test_shutdown_timeout_cuts_streams(starter):
    server = Server(starter, "--shutdown-timeout", "0.2")
    stream = Stream(server.url, ENDLESS)
    server.signal(signal.SIGINT)
    assert server.wait(timeout=10) == 0, server.error_text()
    assert "server_closing" in stream.finish()[-1]


def test_idle_connections_dont_hold_the_end_up(starter):
    server = Server(starter)
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/health").status_code == 200  # the connection is kept
        begin = time.monotonic()
        assert server.close() == 0
        assert time.monotonic() - begin < 5


def test_listens_while_loading(starter):
    """/health answers before the model is there; /ready says that it isn't."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server("synthetic:llama-1b", "--port", port, wait=False)
    try:
        deadline = time.monotonic() + LOAD_SECONDS
        while True:
            try:
                assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
                break
            except httpx.ConnectError:
                assert time.monotonic() < deadline
        assert httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 503
        assert httpx.post(f"http://127.0.0.1:{port}/v1/completions", json={"prompt": "x"}).status_code == 503
    finally:
        assert server.close() == 0, server.error_text()  # the load is given up


def test_port_in_use(server):
    port = server.url.rsplit(":", 1)[1]
    result = run("serve", "--port", port)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("quern: ")
    assert port in result.stderr and "in use" in result.stderr.lower()


def test_a_failed_load_ends_with_its_reason(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\x03\0\0\0" + b"\xff" * 64)
    result = run("serve", broken, "--port", "0")
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("quern: ") and "broken.gguf" in last


@pytest.mark.parametrize("missing", ["nothing-like-this", "/nonexistent/model.gguf"])
def test_a_model_that_isnt_there(missing):
    result = run("serve", missing, "--port", "0")
    assert result.returncode == 1
    assert f"quern: no model '{missing}'" in result.stderr


def test_no_model_names_the_starter(tmp_path):
    result = run("serve", "--port", "0", env=environment(QUERN_HOME=tmp_path))
    assert result.returncode == 1
    assert "quern get starter" in result.stderr
