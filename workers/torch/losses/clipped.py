"""The clipped surrogate of PPO (Schulman et al. 2017, eq. 7), asymmetric as in DAPO (Yu et al. 2025, eq. 10), with GRPO's KL
to a reference (Shao et al. 2024, eq. 3).

    L = Σ w (−ρ min(r A, clip(r, 1 − low, 1 + high) A) + β KL),  r = exp(log p − old)

KL is k3 = exp(d) − d − 1 with d = reference − log p (Schulman 2020), or k2 = ½ d² (Hu 2025); ρ, of exp(old − rollout), is
the importance weight: of the proximal policy to the behaviour policy (Hilton et al. 2022). k3 is what is reported. By the rule
`difference` M r A stands in the place of the minimum, with DPPO's mask M.
"""

import torch

from .importance_weight import by_difference, importance_weight, within_difference
from .loss import Inputs, Loss, TokenResult
from .token_weights import token_weights


def clipped(objective: dict) -> Loss:
    corrects, holds = objective["importanceCap"] > 0, objective["beta"] > 0
    bonus = objective.get("entropyBonus") or 0.0

    def compute(given: Inputs) -> TokenResult:
        logprobs, advantages = given["logprobs"], given["advantages"]
        old = given["old"] if "old" in given else logprobs.detach()
        ratio = torch.exp(logprobs - old)
        plain = ratio * advantages
        if by_difference(objective):
            within = within_difference(logprobs, given["rollout"], advantages, objective)
            terms, clipped = -plain * within, 1 - within
        else:
            bounded = ratio.clamp(1 - objective["clipRatioLow"], 1 + objective["clipRatioHigh"]) * advantages
            terms, clipped = -torch.minimum(plain, bounded), (bounded < plain).float()
        if corrects:
            terms = terms * importance_weight(old, given["rollout"], objective)
        kl = torch.zeros_like(logprobs)
        if holds:
            apart = given["reference"] - logprobs
            kl = torch.expm1(apart) - apart
            terms = terms + objective["beta"] * (apart.square() / 2 if objective.get("klEstimator") == "k2" else kl)
        return TokenResult((terms * given["weights"]).sum(), kl.detach(), clipped)

    return Loss(
        kind="token",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        clips=True,
        needs=("advantages", *(("rollout",) if corrects else ())),
        moves_all=holds or bonus != 0,
        reads_old=True,
        reads=("advantages", *(("rollout",) if corrects else ()), *(("reference",) if holds else ())),
        entropy_bonus=bonus,
        weights=lambda batch, s: token_weights(batch, s, objective["aggregation"], objective["maxCompletionTokens"]),
        compute=compute,
    )
