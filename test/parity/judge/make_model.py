"""Writes a small Llama of random weights with a vocabulary of bytes and a ChatML template, as GGUF."""

import sys

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)


def byte_tokens() -> list[str]:
    """GPT-2's printable stand-in for every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


tokens = [*byte_tokens(), "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
random = np.random.default_rng(1)


def drawn(*shape: int) -> np.ndarray:
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_context_length(8192)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_vocab_size(len(tokens))
writer.add_file_type(0)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("gpt-2")
writer.add_token_list(tokens)
writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * 3)
# An empty list is none.
writer.add_token_merges(["a b"])
writer.add_bos_token_id(256)
writer.add_eos_token_id(258)
writer.add_add_bos_token(False)
writer.add_chat_template(TEMPLATE)
writer.add_tensor("token_embd.weight", drawn(len(tokens), WIDTH))
writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
writer.add_tensor("output.weight", drawn(len(tokens), WIDTH))
for layer in range(LAYERS):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", drawn(WIDTH, WIDTH))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    for name, shape in (("gate", (INNER, WIDTH)), ("up", (INNER, WIDTH)), ("down", (WIDTH, INNER))):
        writer.add_tensor(f"blk.{layer}.ffn_{name}.weight", drawn(*shape))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
