"""Negative log-likelihood of what to imitate, unlikelihood of what to avoid (Welleck et al. 2020, eq. 4).

    L = Σ w A⁺ · −log p + w A⁻ · −log max(1 − p, 10⁻⁵)

An example's own weight, its advantage A, is a factor of what its tokens weigh.
"""

import torch

from .loss import Inputs, Loss, TokenResult
from .token_weights import token_weights

LEAST_DOUBT = 1e-5
"""Keeps the gradient of a token finite that the model is sure of and must unlearn."""


def supervised(objective: dict) -> Loss:
    def compute(given: Inputs) -> TokenResult:
        logprobs, weights = given["logprobs"], given["weights"]
        terms = weights.relu() * -logprobs + (-weights).relu() * unlikelihood(logprobs)
        nothing = torch.zeros_like(weights)
        return TokenResult(terms.sum(), nothing, nothing)

    return Loss(
        kind="token",
        temperature=1.0,
        of_samples=False,
        needs=("advantages",),
        weights=lambda batch, s: token_weights(batch, s, "token") * batch.streams["advantages"],
        compute=compute,
    )


def unlikelihood(logprobs: torch.Tensor) -> torch.Tensor:
    """−log(1 − p) of log p, with 1 − p held at 10⁻⁵ or more in value and slope."""
    fixed = logprobs.detach()
    doubt = (-torch.expm1(fixed)).clamp(min=LEAST_DOUBT)
    return -doubt.log() + (logprobs - fixed) * (fixed.exp() / doubt)
