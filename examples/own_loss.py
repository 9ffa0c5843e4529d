"""A loss of one's own, for the learner in PyTorch: REINFORCE whose gradient is multiplied by a number.

    L = strength · Σ w · −A log p
"""

import torch

from losses.loss import Inputs, Loss, TokenResult
from losses.own import own
from losses.token_weights import token_weights


@own("scaled-reinforce")
def scaled_reinforce(objective: dict) -> Loss:
    options = objective["options"]

    def compute(given: Inputs) -> TokenResult:
        scale = -options["strength"] * given["advantages"]
        nothing = torch.zeros_like(scale)
        return TokenResult((scale * given["logprobs"] * given["weights"]).sum(), nothing, nothing)

    return Loss(
        kind="token",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        needs=("advantages",),
        reads=("advantages",),
        weights=lambda batch, s: token_weights(batch, s, "token", options["maxCompletionTokens"]),
        compute=compute,
    )
