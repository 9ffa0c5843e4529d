"""CISPO (MiniMax-M1, 2025, arXiv 2506.13585, eqs. 4 and 5).

    L = Σ w · −sg(min(r, 1 + high)) A log p,  r = exp(log p − old)

sg: no gradient flows. Without a lower bound, as they ran it.
"""

import torch

from .loss import Inputs, Loss, TokenResult
from .token_weights import token_weights


def cispo(objective: dict) -> Loss:
    bonus = objective.get("entropyBonus") or 0.0
    most = 1 + objective["clipRatioHigh"]

    def compute(given: Inputs) -> TokenResult:
        logprobs = given["logprobs"]
        fixed = logprobs.detach()
        ratio = torch.exp(fixed - (given["old"] if "old" in given else fixed))
        scale = -ratio.clamp(max=most) * given["advantages"]
        return TokenResult((scale * logprobs * given["weights"]).sum(), torch.zeros_like(fixed), (ratio > most).float())

    return Loss(
        kind="token",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        clips=True,
        needs=("advantages",),
        moves_all=bonus != 0,
        reads_old=True,
        reads=("advantages",),
        entropy_bonus=bonus,
        weights=lambda batch, s: token_weights(batch, s, objective["aggregation"], objective["maxCompletionTokens"]),
        compute=compute,
    )
