"""Wrong requests: a clear answer, and the next right request is answered as before."""

import json

import openai
import pytest

CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}

# (what is changed in CHAT, the field that the error names)
WRONG_FIELDS = [
    ({"messages": None}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [1]}, "messages"),
    ({"messages": [{"role": "user"}]}, "messages"),
    ({"messages": [{"role": 1, "content": "hi"}]}, "messages"),
    ({"messages": [{"role": "nobody", "content": "hi"}]}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"min_p": -0.1}, "min_p"),
    ({"top_k": 1.5}, "top_k"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": "1"}, "max_tokens"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"top_logprobs": 5}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"stop": [1]}, "stop"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"logit_bias": {"x": 1}}, "logit_bias"),
    ({"logit_bias": {"1": 101}}, "logit_bias"),
    ({"seed": 0.5}, "seed"),
]

BROKEN_BODIES = {
    "empty": b"",
    "cut": b'{"messages": [{"role": "user", "content": "h',
    "no object": b"[]",
    "trailing": json.dumps(CHAT).encode() + b"x",
    "not utf-8": b'{"messages": [{"role": "user", "content": "\xff"}]}',
    "nul": b"\0" * 64,
    "deep": b'{"messages": ' + b"[" * 100_000,
    "deep but whole": b'{"x": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "overflow": b'{"messages": [{"role": "user", "content": "hi"}], "temperature": 1e400}',
}

NUMBERS = [None, True, "1", "", [], {}, -1, 0, 0.5, 1e18, 2**31, 2**63, 2**64]
NUMERIC_FIELDS = ["temperature", "top_p", "top_k", "min_p", "seed", "n", "max_tokens", "max_completion_tokens",
                  "repetition_penalty", "presence_penalty", "frequency_penalty", "top_logprobs", "min_tokens",
                  "xtc_probability", "xtc_threshold"]


def post(http, body, path="/v1/chat/completions", **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http.post(path, content=content, headers={"content-type": "application/json"} | headers)


def check_error(reply, status, param=None):
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    assert error["message"] and error["type"]
    if param:
        assert (error["param"] or "").startswith(param), error
    return error


@pytest.mark.parametrize(("change", "param"), WRONG_FIELDS, ids=lambda value: json.dumps(value)[:40])
def test_wrong_field_is_named(http, change, param):
    check_error(post(http, CHAT | change), 400, param)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_broken_body(http, canary, name, stream):
    body = BROKEN_BODIES[name]
    if stream and body.startswith(b"{"):
        body = b'{"stream": true, ' + body[1:]
    check_error(post(http, body), 400)


@pytest.mark.parametrize("field", NUMERIC_FIELDS)
def test_every_number_is_taken_or_refused(http, canary, field):
    for value in NUMBERS:
        extra = {"logprobs": True} if field == "top_logprobs" else {}
        change = {field: value}
        if field in ("max_tokens", "max_completion_tokens") and isinstance(value, int) and value > 1:
            change["stop"] = [" "]  # a bound that doesn't bind would run to the end of the context
        reply = post(http, CHAT | extra | {"stop": ["e", "a", "i"]} | change)
        assert reply.status_code in (200, 400), f"{field}={value!r}: {reply.status_code} {reply.text}"
        if reply.status_code == 400:
            check_error(reply, 400, field)


def test_body_too_large_is_refused(http, canary):
    reply = post(http, b'{"messages": "' + b"x" * (65 << 20) + b'"}')
    check_error(reply, 413)


def test_paths_methods_and_media_types(http):
    check_error(http.get("/v1/nothing"), 404)
    check_error(http.get("/v1/chat/completions"), 405)
    check_error(http.post("/v1/models"), 405)
    check_error(post(http, CHAT, **{"content-type": "text/plain"}), 415)
    assert http.post("/v1/chat/completions", content=json.dumps(CHAT)).status_code == 200, "no media type is accepted"


def test_unknown_model_lists_what_there_is(client, server):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-9", messages=CHAT["messages"])
    assert caught.value.code == "model_not_found"
    assert server.model in caught.value.message


@pytest.mark.parametrize("stream", [False, True])
def test_prompt_past_the_context_names_both_numbers(client, canary, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="", messages=[{"role": "user", "content": "word " * 9000}], stream=stream)
    assert caught.value.code == "context_length_exceeded"
    numbers = [int(word) for word in caught.value.message.replace(",", "").split() if word.strip(".;").isdigit()]
    assert 8192 in numbers and any(number > 9000 for number in numbers), caught.value.message


def test_foreign_host_and_origin_are_refused(http):
    check_error(post(http, CHAT, host="evil.example"), 403)
    check_error(post(http, CHAT, origin="http://evil.example"), 403)


def test_health_and_ready(http):
    assert http.get("/health").status_code == 200
    assert http.get("/ready").status_code == 200
