"""Losses of whole sequences that are preferred or not. A sequence's log-prob is the sum over its sampled tokens, of all
its turns; observations do not count. The reference's log-probs are fixed."""

import torch
import torch.nn.functional as F

from .tokens import DTYPE, sequence_sums, tensor, token_logprobs


def log_ratios(inputs, settings):
    """log π(y|x) − log π_ref(y|x), one a sequence [S]."""
    logprobs, _ = token_logprobs(inputs, settings)
    return sequence_sums(inputs, logprobs - tensor(inputs, "reference"))


def dpo(inputs, settings):
    """Rafailov et al. 2023 (arXiv 2305.18290), eq. 7: −log σ(β Δ), Δ the chosen log-ratio less the rejected one, mean over
    pairs. labelSmoothing ε (Mitchell 2023, "A note on DPO with noisy preferences"): −(1 − ε) log σ(β Δ) − ε log
    σ(−β Δ). variant "ipo" (Azar et al. 2023, arXiv 2310.12036, eq. 17): (Δ − 1/(2β))², β being their τ."""
    ratios = log_ratios(inputs, settings)
    chosen = ratios[[pair[0] for pair in inputs["pairs"]]]
    rejected = ratios[[pair[1] for pair in inputs["pairs"]]]
    difference, beta = chosen - rejected, settings["beta"]
    if settings["variant"] == "ipo":
        losses = (difference - 1 / (2 * beta)) ** 2
    else:
        smoothing = settings["labelSmoothing"]
        losses = -(1 - smoothing) * F.logsigmoid(beta * difference) - smoothing * F.logsigmoid(-beta * difference)
    return {
        "loss": losses.mean(),
        "margins": beta * difference,
        "accuracy": (difference > 0).to(DTYPE).mean(),
    }


def kto(inputs, settings):
    """Ethayarajh et al. 2024 (KTO, arXiv 2402.01306), eq. 7: mean of λ_y − v, v = λ_D σ(β (r − z0)) for what is
    desirable, λ_U σ(β (z0 − r)) for what is not, r the log-ratio. z0 has no gradient; it is given (`z0`), or estimated as
    max(0, mean of the log-ratios of mismatched pairs (x_i, y_j)), whose sequence log-probs `mismatched` has."""
    ratios, beta = log_ratios(inputs, settings), settings["beta"]
    if "mismatched" in inputs:
        z0 = (tensor(inputs["mismatched"], "policy") - tensor(inputs["mismatched"], "reference")).mean().clamp(min=0)
    else:
        z0 = torch.tensor(settings["z0"], dtype=DTYPE)
    losses = torch.stack(
        [
            settings["lambdaD"] * (1 - torch.sigmoid(beta * (ratio - z0)))
            if desirable
            else settings["lambdaU"] * (1 - torch.sigmoid(beta * (z0 - ratio)))
            for ratio, desirable in zip(ratios, inputs["desirable"])
        ]
    )
    return {"loss": losses.mean(), "z0": z0, "rewards": beta * ratios}
