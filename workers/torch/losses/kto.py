"""KTO over single sequences (Ethayarajh et al. 2024, arXiv 2402.01306, eqs. 7 and 8).

    L = mean over sequences of label ±1 of λ_D (1 − σ(β (R − z))) or λ_U (1 − σ(β (z − R)))
    R = Σ log p − reference;  z = max(0, the mean R of the sequences of label 0), a constant, 0 where there are none
"""

import torch

from batch import Batch

from .loss import CoupledResult, Inputs, Loss


def kto(objective: dict) -> Loss:
    beta = objective["beta"]

    def compute(batch: Batch, sequences: list[int], given: Inputs) -> CoupledResult:
        apart = given["logprobs"] - given["reference"]
        label = batch.sequences["label"].tolist()

        def ratios(chosen: list[int]) -> torch.Tensor:
            return torch.stack([apart[batch.counted([sequence])].sum() for sequence in chosen])

        mismatched = [sequence for sequence in sequences if label[sequence] == 0]
        drift = ratios(mismatched).detach().mean().clamp(min=0) if mismatched else torch.zeros((), dtype=apart.dtype)
        judged = [sequence for sequence in sequences if label[sequence] != 0]
        if not judged:
            return CoupledResult(apart.sum() * 0, preference={"margin": None, "accuracy": None})
        side = torch.tensor([1.0 if label[sequence] > 0 else -1.0 for sequence in judged], dtype=apart.dtype)
        weight = torch.where(side > 0, objective["desirableWeight"], objective["undesirableWeight"]).to(apart.dtype)
        ratio = ratios(judged)
        value = torch.sigmoid(side * beta * (ratio - drift))
        rewards = beta * ratio.detach()
        both = bool((side > 0).any() and (side < 0).any())
        preference = {
            "margin": float(rewards[side > 0].mean() - rewards[side < 0].mean()) if both else None,
            "accuracy": float((value.detach() > 0.5).double().mean()),
        }
        return CoupledResult((weight * (1 - value)).mean(), preference=preference)

    return Loss(
        kind="coupled",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        of_samples=False,
        prefers=True,
        moves_all=True,
        needs_of_sequences=("label",),
        reads=("reference",),
        compute=compute,
    )
