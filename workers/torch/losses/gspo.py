"""GSPO (Zheng et al. 2025, arXiv 2507.18071, eqs. 5, 7 and 13), one ratio for a sequence.

    L = mean over sequences, in each over its tokens, of −min(s A, clip(s, 1 − low, 1 + high) A)
    s = exp(mean of log p − old over the sequence)

Each token's gradient is that of its own log p in s, as if s · exp(log p − sg(log p)) stood there.
"""

import torch

from batch import Batch

from .loss import CoupledResult, Inputs, Loss


def gspo(objective: dict) -> Loss:
    low, high = 1 - objective["clipRatioLow"], 1 + objective["clipRatioHigh"]

    def compute(batch: Batch, sequences: list[int], given: Inputs) -> CoupledResult:
        logprobs = given["logprobs"]
        old = given["old"] if "old" in given else logprobs.detach()
        counted = [batch.counted([sequence]) for sequence in sequences]
        filled = [mask for mask in counted if mask.any()]
        clipped = torch.zeros(len(batch.tokens))
        loss = logprobs.sum() * 0
        for mask in filled:
            own, advantages = logprobs[mask], given["advantages"][mask]
            ratio = torch.exp((own.detach() - old[mask]).mean())
            by_token = ratio * torch.exp(own - own.detach())
            near = ratio.clamp(low, high)
            held = near * advantages < ratio * advantages
            loss = loss - torch.where(held, near * advantages, by_token * advantages).mean() / len(filled)
            clipped[mask] = held.float()
        return CoupledResult(loss, clipped)

    return Loss(
        kind="coupled",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        clips=True,
        needs=("advantages",),
        reads_old=True,
        reads=("advantages",),
        compute=compute,
    )
