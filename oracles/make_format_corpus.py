"""Makes fixtures/corpus/{gguf,safetensors,hf_config}: small valid files and one hostile file for each way to be wrong.

What each must give stands in fixtures/cases/formats/*.json, which this script doesn't write. Inputs that a fuzzer found
lie in the same folders under the name found_*; they are kept.
"""

import json
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "fixtures" / "corpus"

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}

# Weight types that are read: number, elements and bytes of a block.
WEIGHTS = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "BF16": (30, 1, 2),
}  # fmt: skip


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    """A metadata value with its type in front; an array is (type of the elements, list)."""
    return struct.pack("<I", kind) + bare(kind, content)


def bare(kind, content):
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        inner, elements = content
        return struct.pack("<IQ", inner, len(elements)) + b"".join(bare(inner, one) for one in elements)
    return struct.pack("<" + PACK[kind], content)


def pair(key, kind, content):
    return string(key) + value(kind, content)


def info(name, shape, kind, offset):
    """`shape` as GGUF has it, innermost first."""
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def gguf(pairs=(), infos=(), data=b"", version=3, counts=None, alignment=32):
    tensors, keys = counts or (len(infos), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + b"".join(pairs) + b"".join(infos)
    if data:
        head += bytes(-len(head) % alignment)
    return head + data


NAME = pair("general.name", STRING, "tiny")
ONE = [info("a", [4], 0, 0)]  # 16 bytes of F32


def gguf_valid():
    scalars = [
        pair("u8", U8, 200), pair("i8", I8, -100), pair("u16", U16, 60000), pair("i16", I16, -30000),
        pair("u32", U32, 4_000_000_000), pair("i32", I32, -2_000_000_000), pair("f32", F32, 0.5), pair("bool", BOOL, True),
        pair("string", STRING, "text"), pair("u64", U64, 2**64 - 1), pair("i64", I64, -(2**63)), pair("f64", F64, -0.25),
    ]  # fmt: skip
    arrays = [
        pair("strings", ARRAY, (STRING, ["a", "", b"\xff\x00"])), pair("none", ARRAY, (STRING, [])),
        pair("integers", ARRAY, (I32, [1, -2, 3])), pair("floats", ARRAY, (F32, [0.0, -1.5])),
        pair("bytes", ARRAY, (U8, [1, 2])), pair("bools", ARRAY, (BOOL, [True, False])),
        pair("huge", ARRAY, (U64, [2**63])), pair("nan", ARRAY, (F32, [float("nan")])),
        pair("nested", ARRAY, (ARRAY, [(U8, [1]), (ARRAY, [(STRING, ["deep"])])])),
    ]  # fmt: skip
    infos, data = [], b""
    for name, (kind, block, size) in WEIGHTS.items():
        infos.append(info(name, [block, 2], kind, len(data)))
        data += (bytes(range(1, 251)) * 2)[: 2 * size]
        data += bytes(-len(data) % 32)
    yield "valid_values", gguf(scalars + arrays)
    yield "valid_types", gguf([NAME], infos, data)
    yield "valid_version_2", gguf([NAME], ONE, bytes(16), version=2)
    yield "valid_no_tensors", gguf([NAME])
    yield "valid_empty", gguf()
    yield (
        "valid_alignment_64",
        gguf(
            [pair("general.alignment", U32, 64)],
            [info("second", [2, 3], 0, 64), info("first", [2, 2, 2, 2], 1, 0)],
            bytes(range(88)),
            alignment=64,
        ),
    )


def gguf_headers():
    yield "empty_file", b""
    yield "truncated_magic", b"GGU"
    yield "wrong_magic", b"GGML" + bytes(20)
    yield "truncated_version", b"GGUF\3\0"
    yield "version_0", gguf(version=0)
    yield "version_1", gguf(version=1)
    yield "version_4", gguf(version=4)
    yield "big_endian", b"GGUF" + struct.pack(">IQQ", 3, 1, 1) + bytes(64)
    yield "truncated_counts", gguf()[:20]
    yield "tensor_count_huge", gguf([NAME], counts=(2**64 - 1, 1))
    yield "tensor_count_beyond_file", gguf([NAME], ONE, bytes(16), counts=(1000, 1))
    yield "key_count_huge", gguf([NAME], counts=(0, 2**63))
    yield "key_count_beyond_file", gguf([NAME], counts=(0, 50))
    yield "key_count_one_more", gguf([NAME] + [string("")] * 2, counts=(0, 2))


def gguf_metadata():
    yield "key_length_huge", gguf([struct.pack("<Q", 2**64 - 1) + bytes(16)])
    yield "key_length_beyond_file", gguf([struct.pack("<Q", 60000) + bytes(16)])
    yield "key_empty", gguf([pair("", U8, 1)])
    yield "key_twice", gguf([NAME, pair("x", U8, 1), NAME])
    yield "key_unprintable", gguf([pair("a\n\x1b[31m'", BOOL, 0)[:-1] + b"\7"])
    yield "value_type_unknown", gguf([string("x") + struct.pack("<IQ", 13, 0)])
    yield "value_truncated", gguf([pair("general.number", U64, 1)[:-1]])
    yield "value_missing", gguf([string("general.number")])
    yield "bool_of_2", gguf([string("x") + struct.pack("<IB", BOOL, 2)])
    yield "string_length_huge", gguf([string("x") + struct.pack("<IQ", STRING, 2**64 - 1) + b"abc"])
    yield "string_length_beyond_file", gguf([string("x") + struct.pack("<IQ", STRING, 4) + b"abc"])
    yield "array_type_unknown", gguf([string("x") + struct.pack("<IIQ", ARRAY, 99, 0)])
    yield "array_count_huge", gguf([string("x") + struct.pack("<IIQ", ARRAY, U64, 2**61 + 1) + bytes(8)])
    yield "array_count_beyond_file", gguf([string("x") + struct.pack("<IIQ", ARRAY, U32, 3) + bytes(8)])
    yield "array_string_count_huge", gguf([string("x") + struct.pack("<IIQ", ARRAY, STRING, 2**60) + string("a")])
    yield "array_string_length_huge", gguf([string("x") + struct.pack("<IIQ", ARRAY, STRING, 2) + string("a") + b"\xff" * 8])
    yield "array_string_cut", gguf([pair("x", ARRAY, (STRING, ["one", "two"]))[:-1]])
    deep = (U8, [1])
    for _ in range(4):
        deep = (ARRAY, [deep])
    yield "array_nested_too_deep", gguf([pair("x", ARRAY, deep)])
    yield "alignment_0", gguf([pair("general.alignment", U32, 0)])
    yield "alignment_24", gguf([pair("general.alignment", U32, 24)])
    yield "alignment_huge", gguf([pair("general.alignment", U64, 2**64 - 32)])
    yield "alignment_text", gguf([pair("general.alignment", STRING, "32")])
    yield "split_model", gguf([pair("split.no", U16, 0), pair("split.count", U16, 3)])
    yield "split_count_negative", gguf([pair("split.count", I32, -1)])


def gguf_tensors():
    yield "name_length_huge", gguf([], [struct.pack("<Q", 2**40) + bytes(40)])
    yield "name_too_long", gguf([], [info("x" * 257, [4], 0, 0)], bytes(16))
    yield "name_empty", gguf([], [info("", [4], 0, 0)], bytes(16))
    yield "name_twice", gguf([], [info("a", [4], 0, 0), info("a", [4], 0, 32)], bytes(48))
    yield "description_cut", gguf([], [info("tensor", [4, 4, 4], 0, 0)[:-1]])
    yield "dimensions_0", gguf([], [info("a", [], 0, 0) + bytes(8)], bytes(16))
    yield "dimensions_5", gguf([], [info("a", [1, 1, 1, 1, 1], 0, 0)], bytes(16))
    yield "dimensions_huge", gguf([], [string("a") + struct.pack("<I", 2**32 - 1) + bytes(64)])
    yield "dimension_of_0", gguf([], [info("a", [4, 0], 0, 0)], bytes(16))
    yield "dimension_negative", gguf([], [info("a", [4, 2**64 - 1], 0, 0)], bytes(16))
    yield "dimension_product_overflow", gguf([], [info("a", [2**32, 2**32], 0, 0)], bytes(16))
    yield "dimension_product_wraps_to_4", gguf([], [info("a", [2**62 + 1, 4], 0, 0)], bytes(16))
    yield "byte_size_overflow", gguf([], [info("a", [2**62], 0, 0)], bytes(16))
    yield "type_unknown", gguf([], [info("a", [4], 1000, 0)], bytes(16))
    yield "type_iq2_xxs", gguf([], [info("a", [256], 16, 0)], bytes(66))
    yield "type_iq4_nl", gguf([], [info("a", [32], 20, 0)], bytes(18))
    yield "type_tq1_0", gguf([], [info("a", [256], 34, 0)], bytes(54))
    yield "type_mxfp4", gguf([], [info("a", [32], 39, 0)], bytes(17))
    yield "type_i32", gguf([], [info("a", [4], 26, 0)], bytes(16))
    yield "type_removed_q4_2", gguf([], [info("a", [32], 4, 0)], bytes(32))
    yield "row_not_whole_blocks", gguf([], [info("a", [48, 2], 2, 0)], bytes(54))
    yield "row_not_whole_k_blocks", gguf([], [info("a", [288], 12, 0)], bytes(288))
    yield "offset_unaligned", gguf([], [info("a", [4], 0, 16)], bytes(32))
    yield "offset_huge", gguf([], [info("a", [4], 0, 2**64 - 32)], bytes(16))
    yield "offset_at_end", gguf([], [info("a", [4], 0, 32)], bytes(32))
    yield "data_cut", gguf([], [info("a", [4], 0, 0)], bytes(15))
    yield "data_missing", gguf([], ONE)
    yield "data_overlap", gguf([], [info("a", [4], 0, 32), info("b", [16], 0, 0)], bytes(64))
    yield "data_same", gguf([], [info("a", [4], 0, 0), info("b", [4], 0, 0)], bytes(16))


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)} | more


def safetensors_valid():
    kinds = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2,
             "U8": 1, "BOOL": 1}  # fmt: skip
    header, at = {}, 0
    for kind, size in kinds.items():
        header[kind] = entry(kind, [3], [at, at + 3 * size])
        at += 3 * size
    yield "valid_types", safetensors(header, bytes(range(at)))
    yield "valid_empty", safetensors({})
    yield "valid_scalar", safetensors({"s": entry(shape=[])}, bytes(4))
    yield "valid_no_elements", safetensors({"n": entry(shape=[0, 5], offsets=[0, 0]), "one": entry()}, bytes(4))
    yield "valid_metadata", safetensors({"__metadata__": {"format": "pt", "quote": "\"\u00e9\\"}, "a": entry()}, bytes(4))
    yield "valid_padded", safetensors(json.dumps({"a": entry()}).encode() + b"   \n", bytes(4))
    yield "valid_unknown_field", safetensors({"a": entry(extra={"x": [1, None]})}, bytes(4))
    yield "valid_out_of_order", safetensors({"a": entry(offsets=[4, 8]), "b": entry(offsets=[0, 4])}, bytes(8))


def safetensors_hostile():
    good = {"a": entry()}
    yield "empty_file", b""
    yield "truncated_length", bytes(7)
    yield "length_huge", safetensors(good, bytes(4), length=2**64 - 1)
    yield "length_above_limit", safetensors(good, bytes(4), length=100_000_001)
    yield "length_beyond_file", safetensors(good, length=99_999_999)
    yield "header_empty", safetensors(b"")
    yield "header_cut", safetensors(json.dumps(good).encode()[:-1], bytes(4))
    yield "header_not_json", safetensors(b"{'a': 1}")
    yield "header_list", safetensors([good])
    yield "header_binary", safetensors(bytes(range(128, 160)))
    yield "header_not_utf8", safetensors(b'{"\xff": 1}')
    yield "header_trailing", safetensors(b"{} {}")
    yield "header_deep", safetensors(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}")
    yield "metadata_number", safetensors({"__metadata__": {"epoch": 3}})
    yield "metadata_text", safetensors({"__metadata__": "x"})
    yield "tensor_twice", safetensors(b'{"a":' + json.dumps(entry()).encode() + b',"a":' + json.dumps(entry()).encode() + b"}", bytes(4))
    yield "tensor_text", safetensors({"a": "x"})
    yield "dtype_missing", safetensors({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4))
    yield "dtype_null", safetensors({"a": entry(dtype=None)}, bytes(4))
    yield "dtype_number", safetensors({"a": entry(dtype=3)}, bytes(4))
    yield "dtype_f8", safetensors({"a": entry("F8_E4M3", [4])}, bytes(4))
    yield "dtype_unprintable", safetensors({"a": entry("\u0000\u001b")}, bytes(4))
    yield "shape_missing", safetensors({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4))
    yield "shape_number", safetensors({"a": {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}}, bytes(4))
    yield "shape_negative", safetensors({"a": entry(shape=[-1])}, bytes(4))
    yield "shape_fraction", safetensors({"a": entry(shape=[1.5])}, bytes(4))
    yield "shape_beyond_64_bits", safetensors({"a": entry(shape=[2**64])}, bytes(4))
    yield "shape_product_overflow", safetensors({"a": entry(shape=[2**32, 2**32])}, bytes(4))
    yield "shape_wraps_to_4_bytes", safetensors({"a": entry(shape=[2**62 + 1])}, bytes(4))
    yield "shape_9_dimensions", safetensors({"a": entry(shape=[1] * 9)}, bytes(4))
    yield "offsets_missing", safetensors({"a": {"dtype": "F32", "shape": [1]}}, bytes(4))
    yield "offsets_three", safetensors({"a": entry(offsets=[0, 4, 8])}, bytes(8))
    yield "offsets_negative", safetensors({"a": entry(offsets=[-4, 0])}, bytes(4))
    yield "offsets_reversed", safetensors({"a": entry(offsets=[4, 0])}, bytes(4))
    yield "offsets_beyond_data", safetensors({"a": entry(shape=[2], offsets=[0, 8])}, bytes(7))
    yield "offsets_huge", safetensors({"a": entry(offsets=[2**63 - 5, 2**63 - 1])}, bytes(4))
    yield "size_not_of_shape", safetensors({"a": entry(shape=[2])}, bytes(4))
    yield "size_not_of_dtype", safetensors({"a": entry("F16")}, bytes(4))
    yield "data_overlap", safetensors({"a": entry(shape=[2], offsets=[0, 8]), "b": entry(offsets=[4, 8])}, bytes(8))
    yield "data_hole", safetensors({"a": entry(), "b": entry(offsets=[8, 12])}, bytes(12))
    yield "data_hole_first", safetensors({"a": entry(offsets=[4, 8])}, bytes(8))
    yield "data_trailing", safetensors(good, bytes(8))


LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30,
    "rms_norm_eps": 1e-05, "rope_theta": 100000.0, "tie_word_embeddings": True, "sliding_window": None,
}  # fmt: skip
MLX = {"group_size": 64, "bits": 4, "mode": "affine"}


def text(content):
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def config_files():
    yield "config_valid", text(LLAMA)
    yield "config_valid_rope_scaling", text(LLAMA | {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "truncate": False}})  # fmt: skip
    yield "config_valid_rope_parameters", text({"model_type": "llama", "rope_parameters": {
        "type": "su", "rope_theta": 500000.0, "short_factor": [1, 1.5], "long_factor": [2.0, 4.0]}})  # fmt: skip
    yield "config_valid_mlx", text(LLAMA | {"quantization": MLX | {
        "lm_head": False, "model.embed_tokens": True, "model.layers.0.mlp.down_proj": {"group_size": 32, "bits": 6}}})  # fmt: skip
    yield "config_valid_mxfp4", text(LLAMA | {"quantization_config": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})
    yield "config_empty", b""
    yield "config_list", text([LLAMA])
    yield "config_cut", text(LLAMA)[:40]
    yield "config_nan", b'{"rms_norm_eps": NaN}'
    yield "config_number_huge", b'{"rms_norm_eps": 1e999}'
    yield "config_deep", b'{"x":' * 100 + b"1" + b"}" * 100
    yield "config_key_twice", b'{"model_type": "llama", "model_type": "qwen2"}'
    yield "config_surrogate", b'{"model_type": "\\ud800"}'
    yield "config_model_type_number", text({"model_type": 7})
    yield "config_architectures_text", text({"architectures": "LlamaForCausalLM"})
    yield "config_layers_absurd", text(LLAMA | {"num_hidden_layers": 10**15})
    yield "config_layers_negative", text(LLAMA | {"num_hidden_layers": -1})
    yield "config_layers_beyond_64_bits", text(LLAMA | {"num_hidden_layers": 2**70})
    yield "config_layers_fraction", text(LLAMA | {"num_hidden_layers": 1.5})
    yield "config_layers_text", text(LLAMA | {"num_hidden_layers": "30"})
    yield "config_rope_text", text({"rope_scaling": "linear"})
    yield "config_rope_factor_text", text({"rope_scaling": {"type": "longrope", "short_factor": [1, "2"]}})
    yield "config_rope_type_number", text({"rope_scaling": {"rope_type": 3}})
    yield "config_rope_by_layer", text({"rope_parameters": {"full_attention": {"rope_type": "default"}}})
    yield "config_quantization_gptq", text({"quantization_config": {"quant_method": "gptq", "bits": 4}})
    yield "config_quantization_mode", text({"quantization": MLX | {"mode": "nvfp4"}})
    yield "config_quantization_bits", text({"quantization": MLX | {"bits": 7}})
    yield "config_quantization_bits_huge", text({"quantization": MLX | {"bits": 2**40}})
    yield "config_quantization_group", text({"quantization": MLX | {"group_size": 48}})
    yield "config_quantization_group_0", text({"quantization": MLX | {"group_size": 0}})
    yield "config_quantization_no_bits", text({"quantization": {"group_size": 64}})
    yield "config_quantization_module", text({"quantization": MLX | {"lm_head": {"bits": 4, "group_size": -64}}})
    yield "config_quantization_mxfp4_bits", text({"quantization": {"group_size": 32, "bits": 8, "mode": "mxfp4"}})


def other_files():
    yield "generation_valid", text({"eos_token_id": [2, 0], "temperature": 0.6, "top_p": 0.9, "top_k": 50, "min_p": 0.05,
                                    "repetition_penalty": 1.1, "max_new_tokens": 100, "do_sample": True})  # fmt: skip
    yield "generation_valid_one_eos", text({"eos_token_id": 2, "temperature": None})
    yield "generation_eos_text", text({"eos_token_id": "</s>"})
    yield "generation_eos_negative", text({"eos_token_id": [2, -1]})
    yield "generation_eos_absurd", text({"eos_token_id": 2**31})
    yield "generation_temperature_negative", text({"temperature": -0.1})
    yield "generation_top_p_above_1", text({"top_p": 1.5})
    yield "generation_top_k_negative", text({"top_k": -1})
    yield "generation_penalty_0", text({"repetition_penalty": 0})
    yield "tokenizer_valid", text({"add_bos_token": False, "bos_token": {"content": "<s>", "lstrip": False},
                                   "eos_token": "</s>", "pad_token": None, "chat_template": "{{ messages }}"})  # fmt: skip
    yield "tokenizer_valid_templates", text({"chat_template": [{"name": "default", "template": "a"},
                                                               {"name": "tool_use", "template": "b"}]})  # fmt: skip
    yield "tokenizer_add_bos_text", text({"add_bos_token": "yes"})
    yield "tokenizer_bos_number", text({"bos_token": 1})
    yield "tokenizer_bos_no_content", text({"bos_token": {"lstrip": True}})
    yield "tokenizer_template_number", text({"chat_template": 5})
    yield "tokenizer_template_no_name", text({"chat_template": [{"template": "a"}]})
    yield "tokenizer_template_twice", text({"chat_template": [{"name": "default", "template": "a"}] * 2})
    yield "index_valid", text({"metadata": {"total_size": 8}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})
    yield "index_no_map", text({"metadata": {}})
    yield "index_empty_map", text({"weight_map": {}})
    yield "index_map_list", text({"weight_map": ["a"]})
    yield "index_shard_number", text({"weight_map": {"a": 1}})
    yield "index_shard_up", text({"weight_map": {"a": "../m.safetensors"}})
    yield "index_shard_absolute", text({"weight_map": {"a": "/etc/m.safetensors"}})
    yield "index_shard_nul", text({"weight_map": {"a": "m\u0000.safetensors"}})
    yield "index_shard_other_file", text({"weight_map": {"a": "config.json"}})
    yield "index_tensor_twice", b'{"weight_map": {"a": "1.safetensors", "a": "2.safetensors"}}'


FILES = {
    "gguf": [gguf_valid, gguf_headers, gguf_metadata, gguf_tensors],
    "safetensors": [safetensors_valid, safetensors_hostile],
    "hf_config": [config_files, other_files],
}


def main():
    for kind, makers in FILES.items():
        folder = CORPUS / kind
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if not old.name.startswith("found_"):
                old.unlink()
        for name, content in (file for maker in makers for file in maker()):
            assert not (folder / name).exists(), name
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
