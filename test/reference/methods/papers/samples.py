"""What every equation here reads: a group is one task's samples, a sample is a dictionary with

    mask     [T] of 0 and 1: 1 where the policy sampled the token, 0 where the environment wrote it
    turns    spans {start, end} of sampled tokens, end exclusive, in order; between two of them may lie observation tokens
    reward   the outcome, or None: the sample is left out and must change nothing
    rollout, policy, reference, values   [T] log-probs and V(s_t), the value before token t, meaningful where mask = 1

An advantage is [T], 0 where mask = 0, or None for a sample that is left out.
"""

import torch

DTYPE = torch.float64

# A deviation below this is a zero that rounding made: all rewards are equal.
SMALLEST_DEVIATION = 1e-8


def known(group):
    """The samples that have a reward."""
    return [sample for sample in group["samples"] if sample["reward"] is not None]


def per_sample(groups, values):
    """`values(group)` gives one entry a known sample; returns them in the shape of the groups, None elsewhere."""
    shaped = []
    for group in groups:
        given = iter(values(group) if known(group) else [])
        shaped.append([None if sample["reward"] is None else next(given) for sample in group["samples"]])
    return shaped


def sampled(sample):
    """Positions of the sampled tokens, in order [N]."""
    return [t for t, bit in enumerate(sample["mask"]) if bit == 1]


def on_sampled(sample, value):
    """One number for each sampled token, 0 elsewhere [T]."""
    return torch.tensor(sample["mask"], dtype=DTYPE) * value


def at_sampled(sample, values):
    """Values of the sampled tokens [N], laid out over the completion [T]."""
    laid = torch.zeros(len(sample["mask"]), dtype=DTYPE)
    laid[sampled(sample)] = values
    return laid


def stream(sample, name):
    """A stream of the sample at its sampled tokens [N]."""
    return torch.tensor(sample[name], dtype=DTYPE)[sampled(sample)]


def standardized(values):
    """(x − mean) / standard deviation with n − 1; all 0 where there are fewer than two or all are equal."""
    values = torch.as_tensor(values, dtype=DTYPE)
    if len(values) < 2 or values.std() < SMALLEST_DEVIATION:
        return torch.zeros_like(values)
    return (values - values.mean()) / values.std()


def whitened(advantages):
    """Advantages [N] a sample, standardized over all tokens of the batch; None stays None."""
    present = [a for a in advantages if a is not None]
    if not present:
        return advantages
    scaled = iter(torch.split(standardized(torch.cat(present)), [len(a) for a in present]))
    return [None if a is None else next(scaled) for a in advantages]
