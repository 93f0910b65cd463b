"""Makes fixtures/text/accuracy.safetensors: what mlx-lm, in f32, says of fixtures/text/accuracy.txt with the starter model.

Run it from the repository's root: python oracles/make_accuracy_golden.py <SmolLM2-135M-Instruct.Q4_1.gguf>
For each position but the last: `logprob` of the token that really follows, `best`, the likeliest one, and `margin`, by how
much its logit is above the second's. `tokens` are the text's.
"""

import pathlib
import sys

import gguf
import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from safetensors.numpy import save_file

from make_starter_golden import build, tokenize

CHUNK = 128


def main(path):
    mx.set_default_device(mx.cpu)
    reader = gguf.GGUFReader(path)
    tokens = tokenize(reader, pathlib.Path("fixtures/text/accuracy.txt").read_text())
    model = build(reader)
    cache = make_prompt_cache(model)
    logprob, best, margin = [], [], []
    for first in range(0, len(tokens), CHUNK):
        logits = np.array(model(mx.array([tokens[first : first + CHUNK]]), cache)[0])
        following = tokens[first + 1 : first + CHUNK + 1]
        for row, token in zip(logits.astype(np.float64), following):
            top = row.max()
            logprob.append(row[token] - top - np.log(np.exp(row - top).sum()))
            best.append(row.argmax())
            margin.append(top - np.partition(row, -2)[-2])
    save_file(
        {
            "tokens": np.array(tokens, np.int32),
            "logprob": np.array(logprob, np.float32),
            "best": np.array(best, np.int32),
            "margin": np.array(margin, np.float32),
        },
        "fixtures/text/accuracy.safetensors",
    )
    print(f"{len(tokens)} tokens, perplexity {np.exp(-np.mean(logprob)):.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
