"""Makes fixtures/models/starter.safetensors: what mlx-lm computes with the starter model's real weights, in f32.

Run it from the repository's root: python oracles/make_starter_golden.py <SmolLM2-135M-Instruct.Q4_1.gguf>
The weights are decoded to f32 by gguf-py. Of each step [T, n] it keeps every STRIDE-th value of the flattened matrix, as
`<name>`, and the norm of each token's row, as `<name>.norm`; `tokens` are the prompt's.
"""

import sys

import gguf
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models import llama
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from make_model_twins import GGUF_NAMES, undo_permute

PROMPT = "<|im_start|>user\nWhat is the capital of France, and what is 7 + 8?<|im_end|>\n<|im_start|>assistant\n"
STRIDE = 97  # coprime to every width, so that all columns are visited


class Recorder(nn.Module):
    """Calls a module and keeps what it was given or what it gave."""

    def __init__(self, module, name, seen, given=False):
        super().__init__()
        self.module = module
        self.keep = lambda x: seen.__setitem__(name, x)
        self.given = given
        self.use_sliding = False

    def __call__(self, x, *more, **named):
        y = self.module(x, *more, **named)
        self.keep(x if self.given else y)
        return y


def read_weights(reader):
    ours = {theirs: name for name, theirs in GGUF_NAMES.items()}
    weights = {}
    for tensor in reader.tensors:
        module, suffix = tensor.name.rsplit(".", 1)
        w = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if module.startswith("blk."):
            _, layer, part = module.split(".")
            heads = {"attn_q": 9, "attn_k": 3}.get(part)
            w = undo_permute(w, heads) if heads else w
            name = f"model.layers.{layer}.{ours[part]}"
        else:
            name = ours[module]
        weights[f"{name}.{suffix}"] = mx.array(w)
    return weights


def tokenize(reader, text):
    """The starter's tokenizer, from the file's vocabulary and merges."""

    def field(key):
        return reader.fields[f"tokenizer.ggml.{key}"].contents()

    tokens = field("tokens")
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.add_special_tokens([t for t, kind in zip(tokens, field("token_type")) if kind == 3])
    return tokenizer.encode(text).ids


def build(reader):
    args = llama.ModelArgs(
        model_type="llama",
        hidden_size=576,
        num_hidden_layers=30,
        intermediate_size=1536,
        num_attention_heads=9,
        num_key_value_heads=3,
        rms_norm_eps=1e-5,
        vocab_size=49152,
        max_position_embeddings=8192,
        rope_theta=100000.0,
        tie_word_embeddings=True,
    )
    model = llama.Model(args)
    model.load_weights(list(read_weights(reader).items()))
    return model


def record(model):
    seen = {}
    for i, layer in enumerate(model.model.layers):

        def wrap(owner, part, name, given=False, i=i):
            owner[part] = Recorder(owner[part], f"layer.{i}.{name}", seen, given)

        wrap(layer, "input_layernorm", "attention_norm")
        wrap(layer, "post_attention_layernorm", "feed_forward_norm")
        for part in "qkv":
            wrap(layer.self_attn, f"{part}_proj", part)
        wrap(layer.self_attn, "o_proj", "attention", given=True)
        wrap(layer.mlp, "down_proj", "gated", given=True)
        model.model.layers[i] = Recorder(layer, f"layer.{i}.output", seen)
    model.model.norm = Recorder(model.model.norm, "final_norm", seen)
    return seen


def main(path):
    mx.set_default_device(mx.cpu)
    reader = gguf.GGUFReader(path)
    tokens = tokenize(reader, PROMPT)
    model = build(reader)
    seen = record(model)
    seen["logits"] = model(mx.array([tokens]))
    golden = {"tokens": np.array(tokens, np.int32)}
    for name, value in seen.items():
        value = np.array(value[0], np.float32)
        golden[name] = value.reshape(-1)[::STRIDE].copy()
        golden[name + ".norm"] = np.linalg.norm(value, axis=-1)
    save_file(golden, "fixtures/models/starter.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
