"""Makes fixtures/cases/encoding/*.json: encoded matrices and the f32 values that the `gguf` and `mlx` packages give them.

Run it from the repository's root: python oracles/make_encoding_cases.py
Each case holds a MatrixView's fields, its bytes in hexadecimal, and `expected`, the little-endian f32 values.
"""

import json
import pathlib

import gguf
import mlx.core as mx
import numpy as np

FOLDER = pathlib.Path("fixtures/cases/encoding")
ROWS = 3


def write(name, encoding, cols, data, expected, **more):
    case = {"encoding": encoding, "rows": ROWS, "cols": cols, "data": data.tobytes().hex()}
    case |= {key: value.tobytes().hex() if hasattr(value, "tobytes") else value for key, value in more.items()}
    assert expected.dtype == np.float32 and expected.shape == (ROWS, cols)
    case["expected"] = expected.tobytes().hex()
    (FOLDER / f"{name}.json").write_text(json.dumps(case, indent=0) + "\n")


def random_weights(rng, cols):
    return (rng.standard_normal((ROWS, cols)) * rng.uniform(0.01, 2, (ROWS, 1))).astype(np.float32)


def plain(rng):
    w = random_weights(rng, 37)
    write("f32", "F32", 37, w, w)
    half = w.astype(np.float16)
    half[0, :4] = np.array([0x0001, 0x83FF, 0x7BFF, 0x0400], np.uint16).view(np.float16)  # subnormals and limits
    write("f16", "F16", 37, half, half.astype(np.float32))
    upper = (w.view(np.uint32) >> 16).astype(np.uint16)
    write("bf16", "BF16", 37, upper, (upper.astype(np.uint32) << 16).view(np.float32))


def gguf_blocks(rng):
    types = gguf.GGMLQuantizationType
    for kind in (types.Q4_0, types.Q4_1, types.Q5_0, types.Q5_1, types.Q8_0):
        data = gguf.quants.quantize(random_weights(rng, 96), kind)
        write(kind.name.lower(), kind.name, 96, data, gguf.quants.dequantize(data, kind))
    # Where each K-quant keeps its f16 scales; everything else in a block may be any bits.
    places = {types.Q2_K: (80, 82), types.Q3_K: (108,), types.Q4_K: (0, 2), types.Q5_K: (0, 2), types.Q6_K: (208,)}
    for kind, offsets in places.items():
        _, size = gguf.GGML_QUANT_SIZES[kind]
        data = rng.integers(0, 256, (ROWS, size), np.uint8)
        for offset in offsets:
            scale = rng.uniform(-0.05, 0.05, (ROWS, 1)).astype(np.float16)
            data[:, offset : offset + 2] = scale.view(np.uint8).reshape(ROWS, 2)
        write(kind.name.lower(), kind.name, 256, data, gguf.quants.dequantize(data, kind))


def mlx_affine(rng):
    dtypes = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
    for bits in (2, 3, 4, 5, 6, 8):
        for group, dtype in ((32, "F16"), (64, "BF16"), (128, "F32")):
            w = mx.array(random_weights(rng, 256))
            codes, scales, biases = mx.quantize(w, group_size=group, bits=bits)
            # Scales that two bytes hold make each product exact in f32, so that there is one right answer.
            narrow = dtypes["F16"] if dtype == "F32" else dtypes[dtype]
            scales, biases = scales.astype(narrow), biases.astype(narrow)
            f32_scales, f32_biases = scales.astype(mx.float32), biases.astype(mx.float32)
            expected = mx.dequantize(codes, f32_scales, f32_biases, group_size=group, bits=bits)
            stored = [np.array(a.astype(dtypes[dtype]).view(mx.uint8)) for a in (scales, biases)]
            write(f"affine_{bits}bit_group{group}", "affine", 256, np.array(codes), np.array(expected), bits=bits,
                  group=group, scale_dtype=dtype, scales=stored[0], biases=stored[1])


def mlx_mxfp4(rng):
    codes, scales = mx.quantize(mx.array(random_weights(rng, 128)), group_size=32, bits=4, mode="mxfp4")
    expected = mx.dequantize(codes, scales, group_size=32, bits=4, mode="mxfp4", dtype=mx.float32)
    write("mxfp4", "mxfp4", 128, np.array(codes), np.array(expected.astype(mx.float32)), scales=np.array(scales))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(7)
    plain(generator)
    gguf_blocks(generator)
    mlx_affine(generator)
    mlx_mxfp4(generator)
