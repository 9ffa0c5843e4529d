"""A training step of a Llama in PyTorch: forward, backward and Adam on full rows of tokens, on the CPU or on BENCH_DEVICE."""

import os

import torch
import torch.nn.functional as F
from protocol import serve
from transformers import AutoModelForCausalLM

state: dict = {}
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")


def load(folder: str, threads: int, mode: str) -> dict:
    """`mode`: `eager`, `compile`, or `bf16` (autocast, compiled where that is faster is left to `compile-bf16`)."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").train().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def loss_of(ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, torch.bfloat16, enabled="bf16" in mode):
            logits = model(ids, use_cache=False).logits
        logits = logits[:, :-1].float()
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))

    state.update(model=model, optimizer=optimizer, loss=torch.compile(loss_of) if "compile" in mode else loss_of)
    return {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()}


def steps(tokens: list[list[list[int]]]) -> dict:
    """One optimizer update for each batch [B, T]."""
    losses = []
    for batch in tokens:
        loss = state["loss"](torch.tensor(batch, device=DEVICE))
        state["optimizer"].zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(state["model"].parameters(), 1.0)
        state["optimizer"].step()
        losses.append(loss.detach())
    return {"losses": [loss.item() for loss in losses]}


serve({"load": load, "steps": steps})
