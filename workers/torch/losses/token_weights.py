"""What each token weighs in the mean that a loss is."""

import torch

from batch import Batch


def token_weights(batch: Batch, sequences: list[int], aggregation: str, longest: int = 0) -> torch.Tensor:
    """[T], 0 where the mask is 0. `token`: 1 / counted tokens of the update; `sequence`: 1 / (sequences that have any · the
    counted tokens of its own); `dr-grpo`: 1 / (sequences · longest) (Liu et al. 2025)."""
    counts = batch.counts(sequences)
    total, filled = sum(counts), sum(count > 0 for count in counts)
    weights = torch.zeros(len(batch.tokens))
    for sequence, count in zip(sequences, counts):
        if count == 0:
            continue
        share = {
            "token": lambda: 1 / total,
            "sequence": lambda: 1 / (filled * count),
            "dr-grpo": lambda: 1 / (len(sequences) * longest),
        }[aggregation]()
        weights[batch.span(sequence)] = batch.mask[batch.span(sequence)] * share
    return weights
