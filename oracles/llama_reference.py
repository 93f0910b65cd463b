"""The Llama family in numpy f64: the second opinion beside mlx-lm, and the only one for what mlx-lm lacks.

Written from the definitions in Hugging Face transformers; reads a config.json's fields and weights under their names there.
"""

import math

import numpy as np


def inverse_frequency(config, context):
    """Frequencies [rotary_dim / 2] and what multiplies sine and cosine."""
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    dim = int(head_dim * config.get("partial_rotary_factor", 1.0))
    theta = config["rope_theta"]
    exponents = np.arange(0, dim, 2) / dim
    frequency = theta**-exponents
    rope = config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    trained = config["max_position_embeddings"]
    if kind == "default":
        return frequency, 1.0
    if kind == "linear":
        return frequency / rope["factor"], 1.0
    if kind == "dynamic":
        length = max(context, trained)
        grown = theta * (rope["factor"] * length / trained - (rope["factor"] - 1)) ** (dim / (dim - 2))
        return grown**-exponents, 1.0
    original = rope["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = original / rope["low_freq_factor"], original / rope["high_freq_factor"]
        scaled = []
        for f in frequency:
            wavelength = 2 * math.pi / f
            if wavelength < high:
                scaled.append(f)
            elif wavelength > low:
                scaled.append(f / rope["factor"])
            else:
                smooth = (original / wavelength - rope["low_freq_factor"]) / (
                    rope["high_freq_factor"] - rope["low_freq_factor"]
                )
                scaled.append((1 - smooth) * f / rope["factor"] + smooth * f)
        return np.array(scaled), 1.0
    if kind == "yarn":

        def turns(rotations):
            return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

        low = max(math.floor(turns(rope.get("beta_fast", 32))), 0)
        high = min(math.ceil(turns(rope.get("beta_slow", 1))), dim - 1)
        ramp = np.clip((np.arange(dim // 2) - low) / ((high - low) or 0.001), 0, 1)

        def mscale(weight):
            return 1.0 if rope["factor"] <= 1 else 0.1 * weight * math.log(rope["factor"]) + 1.0

        magnitude = mscale(1.0)
        if rope.get("mscale") and rope.get("mscale_all_dim"):
            magnitude = mscale(rope["mscale"]) / mscale(rope["mscale_all_dim"])
        magnitude = rope.get("attention_factor", magnitude)
        return frequency / rope["factor"] * ramp + frequency * (1 - ramp), magnitude
    assert kind == "longrope", kind
    factor = rope.get("factor", trained / original)
    magnitude = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    factors = rope["long_factor"] if context > original else rope["short_factor"]
    return frequency / np.array(factors), rope.get("attention_factor", magnitude)


def rotate(x, frequency, magnitude):
    """x [T, heads, D], positions from 0; pairs are the two halves of the rotated part."""
    half = len(frequency)
    angle = np.arange(x.shape[0])[:, None] * frequency
    cos, sin = np.cos(angle)[:, None] * magnitude, np.sin(angle)[:, None] * magnitude
    a, b = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], -1)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def attend(q, k, v, window):
    """q [T, H, D], k and v [T, G, D]."""
    tokens, heads, dim = q.shape
    k, v = (np.repeat(x, heads // x.shape[1], 1) for x in (k, v))
    scores = np.einsum("thd,shd->hts", q, k) / math.sqrt(dim)
    distance = np.arange(tokens)[:, None] - np.arange(tokens)
    visible = distance >= 0
    if window:
        visible &= distance < window
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hts,shd->thd", weights, v).reshape(tokens, heads * dim)


def skipped_rotation(config, layer):
    if config["model_type"] != "smollm3":
        return False
    listed = config.get("no_rope_layers")
    return not listed[layer] if listed else (layer + 1) % config["no_rope_layer_interval"] == 0


def forward(config, weights, tokens, context=None):
    """Observed values by name, [T, n] f64. `weights`: f64 arrays under Hugging Face's names."""
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    epsilon = config["rms_norm_eps"]
    minicpm = config["model_type"] == "minicpm"
    embedding_scale = config["scale_emb"] if minicpm else 1.0
    residual_scale = config["scale_depth"] / math.sqrt(config["num_hidden_layers"]) if minicpm else 1.0
    logit_scale = config["dim_model_base"] / config["hidden_size"] if minicpm else 1.0
    window = config.get("sliding_window") if config["model_type"] == "mistral" else None
    frequency, magnitude = inverse_frequency(config, context or config["max_position_embeddings"])

    def linear(module, x):
        y = x @ weights[module + ".weight"].T
        return y + weights[module + ".bias"] if module + ".bias" in weights else y

    seen = {}
    h = seen["embedding"] = embedding_scale * weights["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{i}."

        def see(name, value):
            seen[f"layer.{i}.{name}"] = value
            return value

        x = see("attention_norm", rms_norm(h, weights[prefix + "input_layernorm.weight"], epsilon))
        q = see("q", linear(prefix + "self_attn.q_proj", x)).reshape(len(tokens), heads, -1)
        k = see("k", linear(prefix + "self_attn.k_proj", x)).reshape(len(tokens), kv_heads, -1)
        v = see("v", linear(prefix + "self_attn.v_proj", x)).reshape(len(tokens), kv_heads, -1)
        if not skipped_rotation(config, i):
            q, k = rotate(q, frequency, magnitude), rotate(k, frequency, magnitude)
        see("q_rotated", q.reshape(len(tokens), -1))
        a = see("attention", attend(q, k, v, window))
        h = see("attention_output", h + residual_scale * linear(prefix + "self_attn.o_proj", a))
        x = see("feed_forward_norm", rms_norm(h, weights[prefix + "post_attention_layernorm.weight"], epsilon))
        gate, up = linear(prefix + "mlp.gate_proj", x), linear(prefix + "mlp.up_proj", x)
        gated = see("gated", gate / (1 + np.exp(-gate)) * up)
        h = see("output", h + residual_scale * linear(prefix + "mlp.down_proj", gated))
    h = seen["final_norm"] = rms_norm(h, weights["model.norm.weight"], epsilon)
    tied = config["tie_word_embeddings"]
    seen["logits"] = logit_scale * (h @ weights["model.embed_tokens.weight" if tied else "lm_head.weight"].T)
    return seen
