"""Losses of tokens with a teacher's distribution, and of demonstrations."""

import torch

from .tokens import DTYPE, tensor, token_logprobs, token_weights


def distillation(inputs, settings):
    """A divergence between student q and teacher p, both softmax(logits / temperature) over the whole vocabulary, mean over
    tokens, without a factor for the temperature:
    reverse-kl  KL(q ‖ p) (Gu et al. 2024, MiniLLM, arXiv 2306.08543, eq. 1; Lu 2025, "On-policy distillation"),
    forward-kl  KL(p ‖ q) (Hinton et al. 2015, arXiv 1503.02531),
    jsd  β KL(p ‖ m) + (1 − β) KL(q ‖ m), m = β p + (1 − β) q (Agarwal et al. 2024, GKD, arXiv 2306.13649, eq. 1).
    Several teachers are one: p = Σ weight · p_teacher, the weights summing to 1."""
    _, student = token_logprobs(inputs, settings)
    teachers = torch.stack(
        [
            torch.log_softmax(tensor(teacher, "logits") / settings["temperature"], dim=-1)
            + torch.log(torch.tensor(teacher["weight"], dtype=DTYPE))
            for teacher in inputs["teachers"]
        ]
    )
    teacher = torch.logsumexp(teachers, dim=0)

    def kl(p, q):
        return (p.exp() * (p - q)).sum(-1)

    if settings["divergence"] == "reverse-kl":
        terms = kl(student, teacher)
    elif settings["divergence"] == "forward-kl":
        terms = kl(teacher, student)
    else:
        beta = settings["beta"]
        mixture = torch.log(beta * teacher.exp() + (1 - beta) * student.exp())
        terms = beta * kl(teacher, mixture) + (1 - beta) * kl(student, mixture)
    return {"loss": (token_weights(inputs, settings) * terms).sum()}


def supervised(inputs, settings):
    """−w log p where w > 0, −|w| log(1 − p) where w < 0 (unlikelihood, Welleck et al. 2020, arXiv 1908.04319, eq. 4), sum
    over tokens by the number of tokens that count."""
    logprobs, _ = token_logprobs(inputs, settings)
    weights = tensor(inputs, "weights")
    terms = weights.clamp(min=0) * -logprobs + (-weights).clamp(min=0) * -torch.log1p(-logprobs.exp())
    return {"loss": (token_weights(inputs, settings) * terms).sum()}
