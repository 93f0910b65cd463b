"""Many requests at once, and clients that go away."""

import concurrent.futures
import time

PROMPTS = [f"Write one sentence about {topic}." for topic in
           ("rain", "a cat", "the sea", "bread", "winter", "music", "trains", "a garden")]


def ask(client, prompt, **fields):
    return client.chat.completions.create(model="", messages=[{"role": "user", "content": prompt}], temperature=0,
                                          max_tokens=20, **fields)


def test_together_as_alone(client):
    """An answer doesn't depend on what else is in the batch."""
    alone = [ask(client, prompt).choices[0].message.content for prompt in PROMPTS]
    with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
        together = list(pool.map(lambda prompt: ask(client, prompt).choices[0].message.content, PROMPTS))
    assert together == alone


def test_streams_interleave(client):
    """Two streams are both under way at once: neither waits for the other's end."""
    first, second = (ask(client, prompt, stream=True) for prompt in PROMPTS[:2])
    assert next(iter(first)) and next(iter(second))
    for stream in (first, second):
        assert any(chunk.choices and chunk.choices[0].finish_reason for chunk in stream)


def test_a_client_that_goes_away_frees_its_place(client, canary):
    """Endless replies are left in mid-stream; if one went on, it would hold the machine for minutes."""
    for _ in range(12):
        stream = client.completions.create(model="", prompt="Once upon a time", max_tokens=8000, stream=True,
                                           extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
    begin = time.monotonic()
    canary()
    assert time.monotonic() - begin < 10


def test_a_client_that_goes_away_before_the_answer(server, canary):
    import httpx

    for _ in range(4):
        try:
            httpx.post(f"{server.url}/v1/completions", timeout=0.3,
                       json={"prompt": "Once", "max_tokens": 8000, "ignore_eos": True})
            raise AssertionError("8000 tokens in 0.3 s?")
        except httpx.ReadTimeout:
            pass
    begin = time.monotonic()
    canary()
    assert time.monotonic() - begin < 10
