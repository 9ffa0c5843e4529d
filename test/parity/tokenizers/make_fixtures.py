"""Tokenizers of the real size of each family that the README names, as digests, and what Python encodes with them.

    python -m venv VENV && VENV/bin/pip install -r test/parity/dialects/requirements.txt
    VENV/bin/python test/parity/tokenizers/make_fixtures.py

The files would be 7 MB each. test/unit/engine/tokenizer/full-size.ts makes the same ones by the same rule, which the
digests prove.
"""

import hashlib
import json
import pathlib
import re
import sys

from tokenizers import AddedToken, Tokenizer

HERE = pathlib.Path(__file__).parent
FIXTURES = HERE.parent.parent / "fixtures"
LONGEST = 10

QWEN = [
    *["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    *[f"<|{name}_{end}|>" for name in ("object_ref", "box", "quad", "vision") for end in ("start", "end")],
    *["<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>"],
    *[f"<|{name}|>" for name in ("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep")],
]
LLAMA = [
    *["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>"],
    *["<|finetune_right_pad_id|>", "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>"],
    *["<|eom_id|>", "<|eot_id|>", "<|python_tag|>"],
    *[f"<|reserved_special_token_{i}|>" for i in range(3, 248)],
]
FULL_SIZES = {
    "qwen2.5": ("qwen", 151_643, QWEN),
    "qwen3": ("qwen", 151_643, [*QWEN, "<tool_response>", "</tool_response>", "<think>", "</think>"]),
    "llama3.1": ("llama", 128_000, LLAMA),
}

TEXTS = [
    "What is 12+7?",
    "  \t leading and trailing \n\n ",
    "one\ntwo\r\nthree\n\n\nfour   five 1234567 3.14159",
    "Größe, naïve café, cafe\u0301 A\u030angstro\u0308m \ufb01 \u2126, Ελληνικά, русский, العربية, हिन्दी",
    "中文，日本語, 한국어 👩‍👩‍👧‍👦 🦀🏳️‍🌈 flags 🇨🇭🇯🇵 and ☃️",
    "The quick brown fox jumps over the lazy dog, again and again; it's I'LL we'Ve don't ''s 'Twas.",
    "def quicksort(values):\n    return values if len(values) < 2 else [\n\t*values[::-1], {'a': 0x1F},\n    ]\n",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "<|im_start|>user\nHi<|im_end|>\n<tool_call>\n{\"name\": \"f\"}\n</tool_call><|endoftext|><|im_end",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|reserved_special_token_247|>",
]


def extend(vocab, merges, size):
    state = 1

    def draw(below):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return state * below >> 32

    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]
    high = alphabet[0x80:]
    lefts = [token for token in vocab if re.fullmatch("Ġ?[A-Za-z]+", token)]
    rights = [token for token in vocab if re.fullmatch("[A-Za-z]+", token)]
    while len(vocab) < size:
        letters = draw(8) > 0
        left, right = (
            pool[draw(1 + draw(len(pool)))] for pool in ((lefts, rights) if letters else (high, high))
        )
        token = left + right
        if len(token) > LONGEST or token in vocab:
            continue
        vocab[token] = len(vocab)
        merges.append([left, right])
        if not letters:
            high.append(token)
        else:
            lefts.append(token)
            if not token.startswith("Ġ"):
                rights.append(token)


def make(base, size, special):
    small = json.loads((FIXTURES / "dialects" / f"{base}-tokenizer.json").read_text())
    extend(small["model"]["vocab"], small["model"]["merges"], size)
    small["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(small))
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=token.startswith("<|")) for token in special])
    assert tokenizer.get_vocab_size() == size + len(special)
    return tokenizer


def main():
    fixture = {}
    for name, (base, size, special) in FULL_SIZES.items():
        tokenizer = make(base, size, special)
        saved = tokenizer.to_str(pretty=False)
        if len(sys.argv) > 1:
            (pathlib.Path(sys.argv[1]) / f"{name}.json").write_text(saved)
        fixture[name] = {
            "sha256": hashlib.sha256(saved.encode()).hexdigest(),
            "tokens": tokenizer.get_vocab_size(),
            "cases": [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS],
        }
        print(name, len(saved), "bytes")
    text = json.dumps(fixture, ensure_ascii=False, separators=(",", ":"))
    (FIXTURES / "tokenizer" / "full-size.json").write_text(text.replace('{"text"', '\n{"text"') + "\n")


main()
