"""synthetic: models, and what is served of a long context."""

import httpx
import pytest
from quern_process import Server, run


@pytest.fixture(scope="module")
def tiny():
    with Server("synthetic:tiny?ctx=65536") as server:
        yield server


def complete(server, **fields):
    reply = httpx.post(f"{server.url}/v1/completions", json={"temperature": 0, "max_tokens": 4} | fields, timeout=120)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_answers_a_prompt_past_the_starters_context(tiny):
    reply = complete(tiny, prompt="word " * 12_000)
    assert reply["usage"]["prompt_tokens"] > 12_000
    assert reply["usage"]["completion_tokens"] >= 1


def test_the_same_name_is_the_same_model(tiny):
    text = complete(tiny, prompt="Once", max_tokens=16)["choices"][0]["text"]
    with Server("synthetic:tiny?ctx=65536") as again:
        assert complete(again, prompt="Once", max_tokens=16)["choices"][0]["text"] == text
    with Server("synthetic:tiny?ctx=65536&seed=2") as other:
        assert complete(other, prompt="Once", max_tokens=16)["choices"][0]["text"] != text


def test_a_smaller_budget_gives_a_smaller_context_and_says_so():
    with Server("synthetic:llama-135m?ctx=65536", "--kv-budget", "64MiB") as server:
        refused = httpx.post(f"{server.url}/v1/completions", json={"prompt": "word " * 20_000}, timeout=60)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert "the model's own is 65536" in server.error_text()


@pytest.mark.parametrize("name", ["synthetic:nothing", "synthetic:tiny?ctx=x", "synthetic:tiny?bits=7", "synthetic:tiny?x=1"])
def test_a_wrong_name_is_refused(name):
    result = run("serve", name, "--port", "0")
    assert result.returncode in (1, 2)
    assert result.stderr.splitlines()[-1].startswith("quern: ")
