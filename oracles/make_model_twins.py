"""Makes fixtures/models/<twin>/: tiny models of random weights, and golden.safetensors beside each.

Run it from the repository's root: python oracles/make_model_twins.py
golden.safetensors holds `tokens` and what each step of the forward pass gives for them, in f32: from llama_reference.py,
checked here against mlx-lm wherever that can run the same configuration. Twins that differ in config.json only share
llama/model.safetensors by a link.
"""

import json
import pathlib
import shutil

import gguf
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm import utils as mlx_utils
from mlx_lm.models import llama as mlx_llama
from mlx_lm.models import minicpm as mlx_minicpm
from mlx_lm.models import smollm3 as mlx_smollm3
from safetensors.numpy import save_file

import llama_reference

FOLDER = pathlib.Path("fixtures/models")
TOKENS = [3, 17, 90, 4, 4, 61, 22, 80, 35, 7, 12, 50]
BRIEF = ("layer.0.q_rotated", "layer.0.output", "layer.1.output", "logits")

BASE = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "tie_word_embeddings": False,
    "vocab_size": 96,
}


def shapes(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    dim = config.get("head_dim") or width // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    found = {"model.embed_tokens.weight": (config["vocab_size"], width), "model.norm.weight": (width,)}
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = (config["vocab_size"], width)
    for i in range(config["num_hidden_layers"]):
        linears = {
            "self_attn.q_proj": (q, width),
            "self_attn.k_proj": (kv, width),
            "self_attn.v_proj": (kv, width),
            "self_attn.o_proj": (width, q),
            "mlp.gate_proj": (inner, width),
            "mlp.up_proj": (inner, width),
            "mlp.down_proj": (width, inner),
        }
        for name, shape in linears.items():
            found[f"model.layers.{i}.{name}.weight"] = shape
            if config.get("attention_bias" if name.startswith("self_attn") else "mlp_bias"):
                found[f"model.layers.{i}.{name}.bias"] = shape[:1]
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"model.layers.{i}.{name}.weight"] = (width,)
    return found


def random_weights(rng, config):
    """f32, each exactly a bf16 and an f16, so that every float format holds the same values."""
    weights = {}
    for name, shape in shapes(config).items():
        if "norm" in name:
            w = rng.uniform(0.5, 1.5, shape)
        elif name.endswith("bias"):
            w = rng.normal(0, 0.3, shape)
        else:
            w = rng.normal(0, 1.5 / np.sqrt(shape[-1]), shape)
        weights[name] = np.array((np.asarray(w, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32))
        half = weights[name].astype(np.float16)
        weights[name] = np.where(np.abs(half) < 2**-14, 0, weights[name]).astype(np.float32)
    return weights


def to_f64(weights):
    return {name: np.asarray(w, np.float64) for name, w in weights.items()}


def write_golden(folder, seen, names):
    values = {name: seen[name].astype(np.float32) for name in names if name in seen}
    save_file(values | {"tokens": np.array(TOKENS, np.int32)}, folder / "golden.safetensors")


def fresh(name):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write_config(folder, config):
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def bf16(weights):
    return {name: mx.array(w).astype(mx.bfloat16) for name, w in weights.items()}


def mlx_model(config):
    module = {"minicpm": mlx_minicpm, "smollm3": mlx_smollm3}.get(config["model_type"], mlx_llama)
    return module.Model(module.ModelArgs.from_dict(config))


def check_with_mlx(config, weights, seen):
    model = mlx_model(config)
    model.load_weights(list(model.sanitize({n: mx.array(np.asarray(w, np.float32)) for n, w in weights.items()}).items()))
    logits = np.array(model(mx.array([TOKENS]))[0])
    error = np.abs(logits - seen["logits"]).max() / np.abs(seen["logits"]).max()
    assert error < 2e-5, (config, error)


def make_folder(name, config, weights, names=BRIEF, *, mlx=True, context=None, link=None):
    folder = fresh(name)
    write_config(folder, config)
    if link:
        (folder / "model.safetensors").symlink_to(link)
    else:
        mx.save_safetensors(str(folder / "model.safetensors"), bf16(weights))
    seen = llama_reference.forward(config, to_f64(weights), TOKENS, context)
    if mlx:
        check_with_mlx(config, weights, seen)
    write_golden(folder, seen, names or seen.keys())


def make_sharded(config, weights):
    folder = fresh("llama-sharded")
    write_config(folder, config)
    shards = {"model-00001-of-00002.safetensors": {}, "model-00002-of-00002.safetensors": {}}
    for i, (name, w) in enumerate(bf16(weights).items()):
        shards[list(shards)[i % 2]][name] = w
    for shard, tensors in shards.items():
        mx.save_safetensors(str(folder / shard), tensors)
    index = {"metadata": {}, "weight_map": {name: shard for shard, tensors in shards.items() for name in tensors}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    write_golden(folder, llama_reference.forward(config, to_f64(weights), TOKENS), BRIEF)


def make_mlx(name, config, weights, group, bits, mode="affine", predicate=None):
    """Quantized by mlx-lm itself; the golden values come from the weights that MLX gives back."""
    model = mlx_model(config)
    model.load_weights(list(bf16(weights).items()))
    model, config = mlx_utils.quantize_model(model, config, group, bits, mode=mode, quant_predicate=predicate)
    folder = fresh(name)
    mlx_utils.save_model(folder, model)
    (folder / "model.safetensors.index.json").unlink()
    write_config(folder, config)
    exact = {}
    for path, module in tree_flatten(model.leaf_modules(), is_leaf=nn.Module.is_module):
        if hasattr(module, "bits"):
            more = {} if "biases" not in module else {"biases": module.biases.astype(mx.float32)}
            scales = module.scales if module.scales.dtype == mx.uint8 else module.scales.astype(mx.float32)
            exact[path + ".weight"] = mx.dequantize(
                module.weight, scales, **more, group_size=module.group_size, bits=module.bits, mode=module.mode
            )
        else:
            exact |= {f"{path}.{name}": w for name, w in tree_flatten(module.parameters())}
    exact = {name: np.array(w.astype(mx.float32)) for name, w in exact.items()}
    seen = llama_reference.forward(config, to_f64(exact), TOKENS)
    check_with_mlx(config, exact, seen)
    write_golden(folder, seen, BRIEF)


GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def gguf_name(name):
    for ours, theirs in GGUF_NAMES.items():
        if name.startswith(f"model.layers.") and f".{ours}." in name:
            layer = name.split(".")[2]
            return f"blk.{layer}.{theirs}.{name.rsplit('.', 1)[1]}"
        if name.startswith(ours + "."):
            return f"{theirs}.{name.rsplit('.', 1)[1]}"
    raise KeyError(name)


def permute(w, heads):
    """What the Llama converter does to the rows of Q and K: each head's halves interleaved."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def undo_permute(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def rope_heads(config, name):
    """Heads of a tensor whose rows the converter permutes, else 0."""
    if ".q_proj." in name:
        return config["num_attention_heads"]
    return config["num_key_value_heads"] if ".k_proj." in name else 0


K_SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
K_SCALE = {"Q2_K": 0.008, "Q3_K": 0.0006, "Q4_K": 0.0004, "Q5_K": 0.0002, "Q6_K": 0.00005}


def encode(rng, w, kind):
    """Encoded bytes. gguf-py can't make K-quants: theirs are random bits with plausible f16 scales."""
    if kind.name == "F32":
        return w.astype(np.float32)
    if kind.name not in K_SCALES:
        return gguf.quants.quantize(w.astype(np.float32), kind)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows = np.prod(w.shape[:-1], dtype=int)
    data = rng.integers(0, 256, (rows, w.shape[-1] // block, size), np.uint8)
    for offset in K_SCALES[kind.name]:
        scale = (K_SCALE[kind.name] * rng.uniform(0.5, 1.5, data.shape[:2])).astype(np.float16)
        data[..., offset : offset + 2] = scale[..., None].view(np.uint8)
    return data.reshape(rows, -1)


def write_gguf_config(writer, config):
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    if config.get("head_dim"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    if config["model_type"] == "minicpm":
        writer.add_embedding_scale(config["scale_emb"])
        writer.add_residual_scale(config["scale_depth"] / config["num_hidden_layers"] ** 0.5)
        writer.add_logit_scale(config["hidden_size"] / config["dim_model_base"])
    rope = config.get("rope_scaling") or {}
    kind = rope.get("rope_type")
    if kind in ("linear", "yarn", "longrope"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        if "factor" in rope:
            writer.add_rope_scaling_factor(rope["factor"])
    if kind in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "yarn":
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    frequency, magnitude = llama_reference.inverse_frequency(config, config["max_position_embeddings"])
    if kind == "longrope":
        writer.add_rope_scaling_attn_factors(magnitude)
        for name in ("long", "short"):
            writer.add_tensor(f"rope_factors_{name}.weight", np.array(rope[f"{name}_factor"], np.float32))
    if kind == "llama3":
        plain, _ = llama_reference.inverse_frequency(config | {"rope_scaling": None}, 0)
        writer.add_tensor("rope_freqs.weight", (plain / frequency).astype(np.float32))


def make_gguf(name, config, weights, kinds, names=BRIEF, rng=None):
    """`kinds(tensor name)`: its type. The golden values come from the encoded weights, decoded by gguf-py."""
    folder = fresh(name)
    types = gguf.GGMLQuantizationType
    arch = config["model_type"] if config["model_type"] in ("minicpm", "smollm3") else "llama"
    writer = gguf.GGUFWriter(folder / "model.gguf", arch)
    write_gguf_config(writer, config)
    exact = {}
    for tensor, w in weights.items():
        heads = rope_heads(config, tensor)
        kind = types.F32 if w.ndim == 1 else types[kinds(tensor)]
        data = encode(rng, permute(w, heads) if heads else w, kind)
        writer.add_tensor(gguf_name(tensor), data, raw_dtype=kind)
        decoded = gguf.quants.dequantize(data, kind).reshape(w.shape)
        exact[tensor] = undo_permute(decoded, heads) if heads else decoded
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    seen = llama_reference.forward(config, to_f64(exact), TOKENS)
    check_with_mlx(config, exact, seen)
    write_golden(folder, seen, names)


def rope_kinds():
    """Configurations that differ from BASE in their rotation only: (name, changes, whether mlx-lm has the same)."""
    factors = {"long_factor": [1.0, 1.3, 2.0, 3.0, 4.5, 5.0, 6.0, 8.0], "short_factor": [1.0 + 0.1 * i for i in range(8)]}
    longrope = {"rope_type": "longrope", "original_max_position_embeddings": 16, **factors}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 0.5}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return (
        ("rope-linear", {"rope_scaling": {"type": "linear", "factor": 2.5}}, True),
        # mlx-lm grows with each sequence, ours is fixed by the context: the factor times the trained one.
        ("rope-dynamic", {"max_position_embeddings": 8, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, False),
        ("rope-llama3", {"rope_scaling": llama3 | {"original_max_position_embeddings": 32}}, True),
        ("rope-yarn", {"rope_scaling": yarn}, True),
        ("rope-yarn-mscale", {"rope_scaling": yarn | {"mscale": 0.7, "mscale_all_dim": 0.4}}, True),
        ("rope-longrope-long", {"rope_scaling": longrope}, True),
        ("rope-longrope-short", {"max_position_embeddings": 16, "rope_scaling": longrope | {"factor": 4.0}}, False),
        ("rope-partial", {"partial_rotary_factor": 0.5}, False),
    )


def main():
    mx.set_default_device(mx.cpu)
    rng = np.random.default_rng(7)
    weights = random_weights(rng, BASE)
    make_folder("llama", BASE, weights, names=None)
    make_sharded(BASE, weights)
    shared = "../llama/model.safetensors"
    for name, changes, mlx in rope_kinds():
        config = BASE | changes
        context = 16 if name == "rope-dynamic" else None
        make_folder(name, config, weights, mlx=mlx, context=context, link=shared)
    make_folder("mistral", BASE | {"model_type": "mistral", "sliding_window": 5}, weights, mlx=False, link=shared)
    tied = {k: w for k, w in weights.items() if k != "lm_head.weight"}
    smollm3 = BASE | {"model_type": "smollm3", "no_rope_layer_interval": 2, "tie_word_embeddings": True}
    make_folder("smollm3", smollm3, tied, link=shared)
    minicpm = BASE | {"model_type": "minicpm", "scale_emb": 3.0, "scale_depth": 1.4, "dim_model_base": 32}
    make_folder("minicpm", minicpm, weights, link=shared)
    biased = BASE | {"head_dim": 20, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}
    make_folder("biases", biased | {"num_hidden_layers": 1}, random_weights(rng, biased | {"num_hidden_layers": 1}))

    make_mlx("mlx-4bit", BASE | {"intermediate_size": 128}, random_weights(rng, BASE | {"intermediate_size": 128}), 64, 4)
    make_mlx("mlx-8bit", BASE, weights, 32, 8)
    mix = {"q_proj": 2, "k_proj": 3, "v_proj": 4, "o_proj": 5, "gate_proj": 6, "up_proj": 8}

    def mixed(path, _module):
        part = path.rsplit(".", 1)[-1]
        return {"bits": mix[part], "group_size": 32 if part[0] in "qg" else 64} if part in mix else part == "lm_head"

    make_mlx("mlx-mixed", BASE, weights, 32, 4, predicate=mixed)
    make_mlx("mlx-mxfp4", BASE, weights, 32, 4, mode="mxfp4")

    make_gguf("gguf-f32", BASE, weights, lambda _: "F32")  # the same model as llama
    one = BASE | {"num_hidden_layers": 1, "tie_word_embeddings": True}
    for kind in ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        make_gguf(f"gguf-{kind.lower()}", one, random_weights(rng, one), lambda _, kind=kind: kind)
    wide = one | {"hidden_size": 256, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    wide |= {"intermediate_size": 32}
    for kind in K_SCALES:

        def kinds(tensor, kind=kind):
            if ".o_proj." in tensor or ".down_proj." in tensor:
                return "Q8_0"  # their columns aren't a multiple of 256
            return "Q6_K" if kind == "Q4_K" and ".v_proj." in tensor else kind

        make_gguf(f"gguf-{kind.lower()}", wide, random_weights(rng, wide), kinds, rng=rng)
    small = one | {"vocab_size": 96, "num_hidden_layers": 2, "intermediate_size": 32}
    for name, changes, mlx in rope_kinds():
        if name in ("rope-llama3", "rope-yarn", "rope-longrope-long"):
            config = small | changes
            make_gguf(f"gguf-{name}", config, random_weights(rng, config), lambda _: "Q8_0")
    config = small | {"model_type": "minicpm", "scale_emb": 3.0, "scale_depth": 1.4, "dim_model_base": 32}
    config["tie_word_embeddings"] = False
    make_gguf("gguf-minicpm", config, random_weights(rng, config), lambda _: "Q8_0")
    config = small | {"model_type": "smollm3", "no_rope_layer_interval": 4, "num_hidden_layers": 4, "intermediate_size": 32}
    make_gguf("gguf-smollm3", config, random_weights(rng, config), lambda _: "Q4_0")


if __name__ == "__main__":
    main()
