#!/usr/bin/env python3
"""Makes the golden token ids of fixtures/cases/tokenizer with Hugging Face's tokenizers (and sentencepiece where it is the reference).

    make_tokenizer_golden.py <starter.gguf>

starter: the starter model's vocabulary, in a tokenizer built from the file's tokens and merges with the parts that its
tokenizer.json has (digits alone, then GPT-2's byte level). The tiny vocabularies are trained here on the texts below; each is
kept as tokenizer.json and as GGUF metadata, which must give the same ids. A case is a text and its ids; `plain` are those with
special-token text read as text; `decoded` is what the ids decode to.
"""

import json
import pathlib
import random
import sys

import gguf
import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
GOLDEN = FIXTURES / "cases" / "tokenizer"

TRAINING = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind; it's 12 years old.",
    "def add(a, b):\n    return a + b  # 1234567890\n",
    "Größe und Maß: naïve café, Ærø. Was kostet es? 3,50 €!",
    "你好，世界。今天天气很好。こんにちは世界。",
    "  leading and   trailing spaces  \n\n\ttabs too\r\n",
    "for (int i = 0; i < n; ++i) { sum += values[i]; }",
] * 20


def corpus(special):
    rng = random.Random(5)
    texts = ["", " ", "  ", "a", " a", "a ", "\n", "\n\n \n", "\t\tx", "\r\n\r\n", "Hello, world!", "It's I'LL don't WE'VE 'tis", "1234567890 3.14 １２ ²³ Ⅷ",
             "  two  spaces   three    four", "def f(x):\n\treturn {'a': [1, 2]}\n\n\n", "https://a.b/c?d=e&f=%20#g", "naïve café Ærø ﬁ ǅ ß İ",
             "e\u0301 a\u0308 \u1e9b\u0323 \uac00 \u1100\u1161", "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇨🇭 #️⃣", "你好，世界。これはテスト。안녕하세요", "ไทย हिन्दी العربية עברית", "\u200b\u200d\ufeff\u00a0\u2003\u3000\u2028x",
             "\u0000\u0001\u007f\u0085", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010ffff \ufdd0 \ue000", "x" * 200, "ab " * 60, "!@#$%^&*()_+-=[]{}|;':\",./<>?`~", "a\u2581b ▁▁c", "<0x0A> <0xff>", "l'été\u2019s"]
    texts += ["".join(chr(byte) for byte in range(start, start + 32)) for start in range(0, 256, 32)]
    texts += [f"x{chr(byte)}y {chr(byte)}" for byte in range(256)]
    for token in special:
        texts += [token, f"a{token}b", f" {token} {token}\n", token[:-1], f"{token[1:]}{token}{token[0]}"]
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x5FF), (0x900, 0xDFF), (0x2000, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF), (0x0, 0xD7FF), (0xE000, 0x10FFFF)]
    for _ in range(120):
        low, high = rng.choice(ranges)
        words = ["".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 8))) for _ in range(rng.randint(1, 5))]
        texts.append(rng.choice([" ", "  ", "\n", ""]).join(words))
    return texts


def folder(name):
    path = GOLDEN / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def golden(name, tokenizer, special):
    cases = []
    for text in corpus(special):
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        entry = {"text": text, "ids": ids}
        if plain != ids:
            entry["plain"] = plain
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        if decoded != text:
            entry["decoded"] = decoded
        cases.append(entry)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=True, separators=(",", ":")) for entry in cases)
    (folder(name) / "golden.json").write_text(f"[\n{lines}\n]\n")


def starter(path):
    reader = gguf.GGUFReader(path)
    field = lambda key: reader.fields[f"tokenizer.ggml.{key}"].contents()
    vocab = {token: index for index, token in enumerate(field("tokens"))}
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(field("tokens"), field("token_type")) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    golden("starter", tokenizer, special)


def write_gguf(name, model, tokens, types, scores=None, merges=None, **extra):
    writer = gguf.GGUFWriter(folder(name) / "metadata.gguf", "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges is not None:
        writer.add_token_merges(merges)
    for key, value in extra.items():
        {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string}[type(value)](f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def train_sentencepiece(kind, size, **options):
    text = GOLDEN / "training.txt"
    text.write_text("\n".join(TRAINING))
    prefix = str(GOLDEN / "spm")
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=prefix, vocab_size=size, model_type=kind, unk_id=0, bos_id=1, eos_id=2, hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    processor = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    for path in GOLDEN.glob("spm.*"):
        path.unlink()
    text.unlink()
    count = processor.get_piece_size()
    kinds = [2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else 1 for i in range(count)]
    return processor, [processor.id_to_piece(i) for i in range(count)], kinds, [processor.get_score(i) for i in range(count)]


def special_tokens(tokens, kinds):
    return [AddedToken(token, special=True, normalized=False) for token, kind in zip(tokens, kinds) if kind == 3]


def sentencepiece_bpe():
    _, tokens, kinds, scores = train_sentencepiece("bpe", 700, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)
    vocab = {token: index for index, token in enumerate(tokens)}
    usable = {token for token, kind in zip(tokens, kinds) if kind == 1}
    merges = []
    for token, score in zip(tokens, scores):
        if token in usable:
            splits = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in usable and token[i:] in usable]
            merges += [(score, len(a), len(b), a, b) for a, b in sorted(splits, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))]
    merges.sort(key=lambda merge: merge[:3], reverse=True)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[merge[3:] for merge in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(special_tokens(tokens, kinds))
    tokenizer.save(str(folder("sentencepiece_bpe") / "tokenizer.json"), pretty=False)
    write_gguf("sentencepiece_bpe", "llama", tokens, kinds, scores, bos_token_id=1, eos_token_id=2, unknown_token_id=0)
    golden("sentencepiece_bpe", tokenizer, ["<s>", "</s>"])


def unigram():
    _, tokens, kinds, scores = train_sentencepiece("unigram", 400, normalization_rule_name="identity", byte_fallback=True)
    tokenizer = Tokenizer(models.Unigram(list(zip(tokens, scores)), unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(special_tokens(tokens, kinds))
    tokenizer.save(str(folder("unigram") / "tokenizer.json"), pretty=False)
    write_gguf("unigram", "t5", tokens, kinds, scores, eos_token_id=2, bos_token_id=1, unknown_token_id=0, add_space_prefix=True, remove_extra_whitespaces=True)
    golden("unigram", tokenizer, [])


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TRAINING, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
    tokenizer.save(str(folder("word_piece") / "tokenizer.json"), pretty=False)
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    phantom = lambda token: token if token in special else token[2:] if token.startswith("##") else "▁" + token
    write_gguf("word_piece", "bert", [phantom(token) for token, _ in vocab], [3 if token in special else 1 for token, _ in vocab], bos_token_id=2, eos_token_id=3, unknown_token_id=1)
    golden("word_piece", tokenizer, special)


def byte_level(name, pre, splitter, normalizer=None, whole_words=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole_words))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>"]
    tokenizer.train_from_iterator(TRAINING, trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    tokenizer.save(str(folder(name) / "tokenizer.json"), pretty=False)
    model = json.loads(tokenizer.to_str())["model"]
    vocab = sorted(tokenizer.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1])
    kinds = [3 if token in special else 4 if token == "<think>" else 1 for token, _ in vocab]
    write_gguf(name, "gpt2", [token for token, _ in vocab], kinds, merges=[" ".join(merge) for merge in model["merges"]], pre=pre, eos_token_id=1, add_bos_token=False)
    golden(name, tokenizer, special + ["<think>"])


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 1:
        starter(sys.argv[1])
    sentencepiece_bpe()
    unigram()
    word_piece()
    cl100k = Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    qwen = Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    byte_level("llama_bpe", "llama-bpe", pre_tokenizers.Sequence([pre_tokenizers.Split(cl100k, "isolated"), spelled]), whole_words=True)
    byte_level("qwen2", "qwen2", pre_tokenizers.Sequence([pre_tokenizers.Split(qwen, "isolated"), spelled]), normalizers.NFC())
    print(f"tokenizers {tokenizers.__version__}, {sum(path.stat().st_size for path in GOLDEN.rglob('*.*'))} bytes in {GOLDEN.name}")


if __name__ == "__main__":
    main()
