"""Tiny random models of every family and option, with what PyTorch computes of them.

Usage: make_fixtures.py OUT

Writes one folder a case: the model as `save_pretrained` writes it, and `expected.safetensors` with
`input_ids` [T], `logits` [T, V] and `logprobs` [T - 1] of the next token, `greedy` (tokens that `generate` appends to
the first PROMPT tokens), and `grad.<weight>` of the mean negative log-likelihood.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

LENGTH = 100
PROMPT = 12
NEW_TOKENS = 24
SHAPE = dict(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
    tie_word_embeddings=False,
)


def rope(kind: str, **fields: float) -> dict:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **fields}}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=32)

# name: class, options that differ, dtype, largest shard
CASES = {
    "llama-tied": (LlamaForCausalLM, LlamaConfig, {"tie_word_embeddings": True}, torch.float32, None),
    "llama-all-heads": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 4}, torch.float32, None),
    "llama-biases": (
        LlamaForCausalLM,
        LlamaConfig,
        {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1},
        torch.float32,
        None,
    ),
    "llama-llama3-rope": (LlamaForCausalLM, LlamaConfig, LLAMA3, torch.float32, None),
    "llama-linear-rope": (LlamaForCausalLM, LlamaConfig, rope("linear", factor=4.0), torch.float32, None),
    "llama-dynamic-rope": (LlamaForCausalLM, LlamaConfig, rope("dynamic", factor=4.0), torch.float32, None),
    "llama-yarn-rope": (LlamaForCausalLM, LlamaConfig, YARN, torch.float32, None),
    "llama-f16": (LlamaForCausalLM, LlamaConfig, {}, torch.float16, None),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {"rms_norm_eps": 1e-6}, torch.float32, None),
    "qwen2-tied-sharded": (Qwen2ForCausalLM, Qwen2Config, {"tie_word_embeddings": True}, torch.float32, "40KB"),
    "qwen2-yarn-bf16": (Qwen2ForCausalLM, Qwen2Config, YARN, torch.bfloat16, None),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {"tie_word_embeddings": True}, torch.float32, None),
    "qwen3-biases": (Qwen3ForCausalLM, Qwen3Config, {"attention_bias": True}, torch.float32, None),
    "qwen2-padded": (Qwen2ForCausalLM, Qwen2Config, {"tie_word_embeddings": True}, torch.float32, None),
}
# Ids that the tokenizer of a case lacks: a hole, and padding at the end. Their logits are masked.
LACKING = {"qwen2-padded": [3, 20, 21, *range(41, 48)]}
MASKED = -1e30


def randomize(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Weights large enough that every part of the model matters; biases and gains too."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise / parameter.shape[1] ** 0.5)
            else:
                parameter.copy_(0.2 * noise + (0.0 if name.endswith("bias") else 1.0))


def make(folder: Path, name: str, seed: int) -> None:
    cls, config_cls, options, dtype, shard = CASES[name]
    generator = torch.Generator().manual_seed(seed)
    model = cls(config_cls(**{**SHAPE, **options}))
    randomize(model, generator)
    model.to(dtype).save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
    lacking = LACKING.get(name, [])
    known = [i for i in range(SHAPE["vocab_size"]) if i not in lacking]
    vocabulary = {f"t{i}": i for i in known}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)

    # What was saved, in float32: rounding to half is the file's, not the computation's.
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.tensor(known)[torch.randint(0, len(known), (1, LENGTH), generator=generator)]
    mask = torch.zeros(SHAPE["vocab_size"])
    mask[lacking] = MASKED
    logits = model(ids).logits[0] + mask
    logprobs = torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None])[:, 0]
    (-logprobs.mean()).backward()
    with torch.no_grad():
        greedy = model.generate(
            ids[:, :PROMPT],
            attention_mask=torch.ones(1, PROMPT, dtype=torch.long),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            pad_token_id=0,
            suppress_tokens=lacking or None,
        )[0, PROMPT:]
    expected = {
        "input_ids": ids[0].to(torch.int32),
        "logits": logits.detach(),
        "logprobs": logprobs.detach(),
        "greedy": greedy.to(torch.int32),
    }
    for parameter_name, parameter in model.named_parameters():
        expected[f"grad.{parameter_name}"] = parameter.grad
    save_file({key: value.contiguous() for key, value in expected.items()}, folder / "expected.safetensors")


def main() -> None:
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    for seed, name in enumerate(CASES):
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, name, seed + 1)
    import transformers

    versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    (out / "versions.json").write_text(json.dumps(versions) + "\n")


if __name__ == "__main__":
    main()
