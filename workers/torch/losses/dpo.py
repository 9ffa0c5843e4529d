"""DPO over pairs (Rafailov et al. 2023, arXiv 2305.18290, eq. 7), smoothed by how often a label is wrong (Mitchell 2023, eq. 3).

    L = mean over pairs of −(1 − ε) log σ(β Δ) − ε log σ(−β Δ)
    Δ = (Σ log p − reference) of the preferred sequence, less that of the other

`ipo`: the mean of (Δ − 1 / 2β)² (Azar et al. 2023, arXiv 2310.12036, eq. 17). Sequences of pair −1 count nowhere.
"""

import torch
from torch.nn.functional import logsigmoid

from batch import Batch

from .loss import CoupledResult, Inputs, Loss


def dpo(objective: dict) -> Loss:
    beta, wrong = objective["beta"], objective["labelSmoothing"]

    def compute(batch: Batch, sequences: list[int], given: Inputs) -> CoupledResult:
        apart = given["logprobs"] - given["reference"]
        pairs = pairs_of(batch, sequences)
        if not pairs:
            return CoupledResult(apart.sum() * 0, preference={"margin": None, "accuracy": None})

        def ratio(sequence: int) -> torch.Tensor:
            return apart[batch.counted([sequence])].sum()

        deltas = torch.stack([ratio(preferred[0]) - ratio(other[0]) for preferred, other in pairs.values()])
        if objective["variant"] == "ipo":
            losses = (deltas - 1 / (2 * beta)).square()
        else:
            losses = -(1 - wrong) * logsigmoid(beta * deltas) - wrong * logsigmoid(-beta * deltas)
        measured = deltas.detach()
        preference = {"margin": float(beta * measured.mean()), "accuracy": float((measured > 0).double().mean())}
        return CoupledResult(losses.mean(), preference=preference)

    return Loss(
        kind="coupled",
        temperature=objective["temperature"],
        top_k=objective["topK"],
        of_samples=False,
        prefers=True,
        moves_all=True,
        needs_of_sequences=("pair", "label"),
        reads=("reference",),
        problem_of=problem_of,
        compute=compute,
    )


def pairs_of(batch: Batch, sequences: list[int]) -> dict[int, tuple[list[int], list[int]]]:
    """The preferred and the other sequences of each pair, by its number."""
    pairs: dict[int, tuple[list[int], list[int]]] = {}
    for sequence in sequences:
        number = int(batch.sequences["pair"][sequence])
        if number >= 0:
            preferred, other = pairs.setdefault(number, ([], []))
            (preferred if batch.sequences["label"][sequence] == 1 else other).append(sequence)
    return pairs


def problem_of(batch: Batch) -> str | None:
    for number, update in enumerate(batch.updates, 1):
        for pair, (preferred, other) in pairs_of(batch, update).items():
            if len(preferred) != 1 or len(other) != 1:
                return (
                    f"update {number} has {len(preferred)} preferred and {len(other)} other sequences of pair {pair}: "
                    "it must have one of each"
                )
    return None
