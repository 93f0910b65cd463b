"""What the openai client gets: chats and completions, stream and not."""

import pytest

QUESTION = [{"role": "user", "content": "Tell me the capital of France."}]


def ask(client, **fields):
    fields = {"model": "", "messages": QUESTION, "temperature": 0, "max_tokens": 24} | fields
    return client.chat.completions.create(**fields)


def collect(stream):
    """Texts and finish reasons by choice, and the usage, of a stream."""
    texts, reasons, usages = {}, {}, []
    for chunk in stream:
        if chunk.usage:
            assert not chunk.choices, "usage comes in a chunk of its own"
            usages.append(chunk.usage)
        for choice in chunk.choices:
            piece = choice.delta.content if hasattr(choice, "delta") else choice.text
            assert "\ufffd" not in (piece or "")
            texts[choice.index] = texts.get(choice.index, "") + (piece or "")
            if choice.finish_reason:
                assert choice.index not in reasons
                reasons[choice.index] = choice.finish_reason
    return texts, reasons, usages


def test_chat_answers_the_question(client, server):
    reply = ask(client)
    assert "Paris" in reply.choices[0].message.content
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == server.model
    usage = reply.usage
    assert usage.prompt_tokens > 10
    assert 0 < usage.completion_tokens <= 24
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize("max_tokens", [1, 5, 24])
def test_stream_equals_body(client, max_tokens):
    body = ask(client, max_tokens=max_tokens)
    texts, reasons, usages = collect(
        ask(client, max_tokens=max_tokens, stream=True, stream_options={"include_usage": True}))
    assert texts[0] == body.choices[0].message.content
    assert reasons[0] == body.choices[0].finish_reason
    assert [usage.model_dump() for usage in usages] == [body.usage.model_dump()]


def test_usage_of_a_stream_only_when_asked(client):
    _, _, usages = collect(ask(client, stream=True))
    assert usages == []


def test_max_tokens_ends_with_length(client):
    reply = ask(client, max_tokens=3)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 3


def test_max_completion_tokens_wins(client):
    assert ask(client, max_tokens=20, max_completion_tokens=2).usage.completion_tokens == 2


@pytest.mark.parametrize("stream", [False, True])
def test_stop_string_never_leaks(client, stream):
    """The stop lies inside what the model says, over token borders."""
    full = ask(client).choices[0].message.content
    stop = full[len(full) // 2 - 3:len(full) // 2 + 3]
    expected = full[:full.index(stop)]
    reply = ask(client, stop=[stop, "never said"], stream=stream)
    if stream:
        texts, reasons, _ = collect(reply)
        assert (texts[0], reasons[0]) == (expected, "stop")
    else:
        assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == (expected, "stop")


def test_a_seed_repeats_and_another_differs(client):
    def story(seed):
        fields = {"messages": [{"role": "user", "content": "Tell a story."}], "temperature": 1.2, "max_tokens": 24}
        return ask(client, seed=seed, **fields).choices[0].message.content

    assert story(7) == story(7)
    assert len({story(seed) for seed in (7, 8, 9)}) > 1


@pytest.mark.parametrize("stream", [False, True])
def test_choices_differ_and_the_prompt_counts_once(client, stream):
    fields = {"messages": [{"role": "user", "content": "Tell a story."}], "temperature": 1.2, "seed": 3, "max_tokens": 16}
    alone = ask(client, **fields)
    reply = ask(client, n=3, stream=stream, **fields,
                **({"stream_options": {"include_usage": True}} if stream else {}))
    if stream:
        texts, _, usages = collect(reply)
        usage = usages[0]
    else:
        texts, usage = {choice.index: choice.message.content for choice in reply.choices}, reply.usage
    assert sorted(texts) == [0, 1, 2]
    assert texts[0] == alone.choices[0].message.content
    assert len(set(texts.values())) == 3
    assert usage.prompt_tokens == alone.usage.prompt_tokens
    assert 16 < usage.completion_tokens <= 48


def test_logprobs_are_of_the_text(client):
    reply = ask(client, logprobs=True, top_logprobs=3, max_tokens=8)
    entries = reply.choices[0].logprobs.content
    assert len(entries) >= 7
    assert b"".join(bytes(entry.bytes) for entry in entries).decode() == reply.choices[0].message.content
    for entry in entries:
        assert entry.logprob <= 0
        assert len(entry.top_logprobs) == 3
        best = [top.logprob for top in entry.top_logprobs]
        assert best == sorted(best, reverse=True)
        assert best[0] == entry.logprob, "greedy takes the likeliest"
    assert ask(client, max_tokens=2).choices[0].logprobs is None


def test_completion_continues_text(client):
    fields = {"model": "", "prompt": "The days of the week are Monday, Tuesday,", "temperature": 0, "max_tokens": 8}
    body = client.completions.create(**fields)
    assert "Wednesday" in body.choices[0].text
    texts, reasons, _ = collect(client.completions.create(stream=True, **fields))
    assert (texts[0], reasons[0]) == (body.choices[0].text, body.choices[0].finish_reason)
    echoed = client.completions.create(echo=True, **fields)
    assert echoed.choices[0].text == fields["prompt"] + body.choices[0].text


def test_completion_of_several_prompts(client):
    prompts = ["One, two,", "Red, green,"]
    alone = [client.completions.create(model="", prompt=p, temperature=0, max_tokens=6).choices[0].text for p in prompts]
    both = client.completions.create(model="", prompt=prompts, temperature=0, max_tokens=6)
    assert [choice.text for choice in sorted(both.choices, key=lambda c: c.index)] == alone


def test_special_token_text_in_a_message_is_plain_text(client):
    """A user who writes the template's own markers gets no turn of their making."""
    plain = ask(client, messages=[{"role": "user", "content": "a b"}], max_tokens=1).usage.prompt_tokens
    marked = ask(client, messages=[{"role": "user", "content": "a <|im_end|> b"}], max_tokens=1).usage.prompt_tokens
    assert marked > plain + 2, "the marker became several tokens"


def test_models_and_names(client, server, starter):
    models = client.models.list().data
    assert models[0].id == server.model
    assert client.models.retrieve(server.model).id == server.model
    for name in (server.model, "fast", "small", str(starter)):
        assert ask(client, model=name, max_tokens=1).choices
    text = [ask(client, model=name, max_tokens=6).choices[0].message.content for name in ("fast", server.model)]
    assert text[0] == text[1]
