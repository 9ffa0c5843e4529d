"""A divergence between student q and teacher p over the whole vocabulary, on the student's own trajectories.

    L = Σ w D
    reverse-kl: KL(q ‖ p) (Gu et al. 2024, arXiv 2306.08543, eq. 1);  reverse-kl-each: Σ weight · KL(q ‖ p_teacher);  forward-kl: KL(p ‖ q) (Hinton et al. 2015)
    jsd: β KL(p ‖ m) + (1 − β) KL(q ‖ m),  m = β p + (1 − β) q (Agarwal et al. 2024, arXiv 2306.13649, eq. 1)

But for reverse-kl-each several teachers are one: p = Σ weight · p_teacher; a sequence with a `teacher` has that one alone.
"""

import math

import torch
from torch.nn.functional import softplus

from batch import Batch

from .loss import Loss
from .token_weights import token_weights

NO_SHARE = -1e30
"""The logarithm of no share at all: lower than that of any probability, and finite, so that 0 · log 0 is 0."""


def distill(objective: dict) -> Loss:
    weights = tuple(objective["teacherWeights"])

    def problem_of(batch: Batch) -> str | None:
        for teacher in batch.sequences.get("teacher", torch.zeros(0)).tolist():
            if not float(teacher).is_integer() or not -1 <= teacher < len(weights):
                return f"a sequence has teacher {teacher}: there are 0 to {len(weights) - 1}, or −1 for all of them by weight"
        return None

    return Loss(
        kind="distribution",
        temperature=objective["temperature"],
        moves_all=True,
        problem_of=problem_of,
        weights=lambda batch, s: token_weights(batch, s, objective["aggregation"], objective["maxCompletionTokens"]),
        compute=lambda log_q, log_p: divergence(objective["divergence"], log_q, log_p),
        teachers=weights,
        merged=mean_log_probs if objective["divergence"]["kind"] == "reverse-kl-each" else mixture,
    )


def divergence(of: dict, log_q: torch.Tensor, log_p: torch.Tensor) -> torch.Tensor:
    """D [n] of the student's log-probs [n, V] from the teacher's."""
    if of["kind"] in ("reverse-kl", "reverse-kl-each"):
        return (log_q.exp() * (log_q - log_p)).sum(-1)
    if of["kind"] == "forward-kl":
        return (log_p.exp() * (log_p - log_q)).sum(-1)
    beta = of["beta"]
    above = log_p - log_q
    # log q/m; log m/q = log(1 − β) + log(1 + β/(1 − β) · p/q), for a difference of logarithms would be rounding.
    of_student = -(softplus(above + math.log(beta) - math.log1p(-beta)) + math.log1p(-beta))
    of_teacher = above + of_student
    return beta * (log_p.exp() * of_teacher).sum(-1) + (1 - beta) * (log_q.exp() * of_student).sum(-1)


def shares(batch: Batch, weights: tuple[float, ...]) -> list[torch.Tensor]:
    """What each teacher's distribution counts for at each token [T]; they sum to 1 over the teachers."""
    per_teacher = [torch.full((len(batch.tokens),), weight) for weight in weights]
    for sequence, own in enumerate(batch.sequences.get("teacher", torch.zeros(0)).tolist()):
        if own >= 0:
            for index, share in enumerate(per_teacher):
                share[batch.span(sequence)] = float(index == own)
    return per_teacher


def mean_log_probs(log_probs: list[torch.Tensor], share: list[torch.Tensor]) -> torch.Tensor:
    """Σ share · log p [n, V]: Σ share · KL(q ‖ p) = Σ q (log q − Σ share · log p)."""
    return sum(s[:, None] * p for p, s in zip(log_probs, share))


def mixture(log_probs: list[torch.Tensor], share: list[torch.Tensor]) -> torch.Tensor:
    """log Σ share · p [n, V] of teachers' log-probs [n, V] and shares [n]."""
    if len(log_probs) == 1:
        return log_probs[0]
    logs = [torch.where(s > 0, s.clamp(min=1e-38).log(), torch.full_like(s, NO_SHARE)) for s in share]
    return torch.logsumexp(torch.stack([p + log[:, None] for p, log in zip(log_probs, logs)]), 0)
