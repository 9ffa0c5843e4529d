"""REINFORCE (Williams 1992).

    L = Σ w · −ρ A log p

ρ, a constant of exp(log p − rollout), corrects for samples of other weights than those that learn (Ionides 2008; V-trace,
Espeholt et al. 2018); by the rule `difference` it is 0 where DPPO's mask is.
"""

import torch

from .importance_weight import by_difference, importance_weight, within_difference
from .loss import Inputs, Loss, TokenResult
from .token_weights import token_weights


def reinforce(objective: dict) -> Loss:
    corrects = objective["importanceCap"] > 0
    bonus = objective.get("entropyBonus") or 0.0
    streams = ("advantages", *(("rollout",) if corrects else ()))

    def compute(given: Inputs) -> TokenResult:
        logprobs = given["logprobs"]
        scale = -given["advantages"]
        if corrects:
            scale = scale * importance_weight(logprobs.detach(), given["rollout"], objective)
        nothing = torch.zeros_like(scale)
        clipped = nothing
        if by_difference(objective):
            within = within_difference(logprobs, given["rollout"], given["advantages"], objective)
            scale, clipped = scale * within, 1 - within
        return TokenResult((scale * logprobs * given["weights"]).sum(), nothing, clipped)

    return Loss(
        kind="token",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        clips=by_difference(objective),
        needs=streams,
        moves_all=bonus != 0,
        reads=streams,
        entropy_bonus=bonus,
        weights=lambda batch, s: token_weights(batch, s, objective["aggregation"], objective["maxCompletionTokens"]),
        compute=compute,
    )
