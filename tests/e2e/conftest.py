"""What the end-to-end tests share: one server with the starter for the whole session, and clients of it."""

import httpx
import openai
import pytest
from quern_process import Server, starter_path


@pytest.fixture(scope="session")
def starter():
    return starter_path()


@pytest.fixture(scope="session")
def server(starter):
    with Server(starter, "--served-model-name", "fast,small") as running:
        yield running
        assert running.process.poll() is None, running.error_text()
    assert running.process.returncode == 0, running.error_text()


@pytest.fixture(scope="session")
def client(server):
    """The openai client, without retries: an error is seen as it is."""
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60)


@pytest.fixture(scope="session")
def http(server):
    """Plain HTTP, for what the openai client wouldn't send."""
    with httpx.Client(base_url=server.url, timeout=60) as plain:
        yield plain


@pytest.fixture
def canary(client):
    """A request whose answer must be the same before and after whatever a test does."""

    def ask():
        reply = client.chat.completions.create(
            model="", messages=[{"role": "user", "content": "Name three colours."}], temperature=0, max_tokens=12)
        return reply.choices[0].message.content

    before = ask()
    yield ask
    assert ask() == before
