"""What each token weighs in the mean that a loss is."""

import torch

from batch import Batch


def token_weights(batch: Batch, sequences: list[int], aggregation: str, longest: int = 0) -> torch.Tensor:
    """[T], 0 where the mask is 0. `token`: 1 / counted tokens of the update; `sequence`: 1 / (sequences that have any · the
    counted tokens of its own); `dr-grpo`: 1 / (sequences · longest) (Liu et al. 2025). Branches of one episode are one."""
    counts = batch.counts(sequences)
    episodes = batch.episodes(sequences)
    of = dict.fromkeys(episodes, 0)
    for episode, count in zip(episodes, counts):
        of[episode] += count
    total, filled = sum(counts), sum(count > 0 for count in of.values())
    weights = torch.zeros(len(batch.tokens))
    for sequence, episode, count in zip(sequences, episodes, counts):
        if count == 0:
            continue
        share = {
            "token": lambda: 1 / total,
            "sequence": lambda: 1 / (filled * of[episode]),
            "dr-grpo": lambda: 1 / (len(of) * longest),
        }[aggregation]()
        weights[batch.span(sequence)] = batch.mask[batch.span(sequence)] * share
    return weights
