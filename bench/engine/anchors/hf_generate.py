"""Hugging Face `generate`, on the CPU or on BENCH_DEVICE."""

import os

import torch
from protocol import serve
from transformers import AutoModelForCausalLM

model = None
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")


def load(folder: str, threads: int, dtype: str = "float32") -> dict:
    global model
    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval().to(DEVICE)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()}


def extend(ids: torch.Tensor, new_tokens: int, top_p: float) -> torch.Tensor:
    with torch.no_grad():
        ids = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            do_sample=top_p > 0,
            **({"top_p": top_p, "top_k": 0, "temperature": 1.0} if top_p > 0 else {}),
        )
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return ids


def greedy(prompt: list[int], new_tokens: int) -> dict:
    ids = extend(torch.tensor([prompt], device=DEVICE), new_tokens, 0)
    return {"tokens": ids[0, len(prompt) :].tolist()}


def decode(prompts: list[list[int]], new_tokens: int, top_p: float) -> dict:
    ids = extend(torch.tensor(prompts, device=DEVICE), new_tokens, top_p)
    return {"tokens": ids.shape[0] * new_tokens}


def turns(prompt: list[int], samples: int, results: list[list[int]], new_tokens: int, top_p: float) -> dict:
    """A group with a shared prompt; after each turn a tool's result is appended and everything is prefilled again."""
    ids = torch.tensor([prompt] * samples, device=DEVICE)
    for result in results:
        ids = extend(ids, new_tokens, top_p)
        ids = torch.cat([ids, torch.tensor([result] * samples, device=DEVICE)], 1)
    return {"tokens": samples * new_tokens * len(results)}


serve({"load": load, "greedy": greedy, "decode": decode, "turns": turns})
