"""Losses of samples with advantages, and of a critic."""

import torch

from .tokens import DTYPE, entropies, over_sampled, spans, tensor, token_logprobs, token_weights


def clipped_surrogate(inputs, settings):
    """Σ w · (−ρ min(r A, clip(r, 1 − low, 1 + high) A) + β KL) − coefficient · Σ w H, r = exp(log p − old):
    PPO (Schulman et al. 2017, arXiv 1707.06347, eqs. 7 and 9), GRPO (Shao et al. 2024, arXiv 2402.03300, eqs. 3 and 4),
    clip-higher (Yu et al. 2025, arXiv 2503.14476, eq. 10). `old` absent: the first update, r is 1 with the slope of log p.
    ρ corrects for an engine that sampled with other probabilities (Yao et al. 2025, "Your efficient RL framework secretly
    brings you off-policy RL training"): truncated, min(exp(old − rollout), cap); masked, exp(old − rollout) within
    [1/cap, cap] and 0 outside (IcePop, Ling team 2025, arXiv 2510.18855); the token still counts in the mean. `floor` is
    another lower bound. With several updates it is the decoupled objective of AReaL (Fu et al. 2025, arXiv 2505.24298, eq. 5):
    π_prox/π_behav · min(u A, clip(u) A), u = π/π_prox. By "difference" it is DPPO (Qi et al. 2026, arXiv 2602.04879,
    Binary-TV): M r A without a clip, M = 0 where A > 0 and π − μ > δ, or A < 0 and μ − π > δ, for the sampled token.
    KL is k3, or k2 = ½ (log p − reference)² (Schulman 2020; REINFORCE++-baseline, Hu 2025); what is reported is k3."""
    logprobs, distribution = token_logprobs(inputs, settings)
    mask, weights, advantages = tensor(inputs, "mask"), token_weights(inputs, settings), tensor(inputs, "advantages")
    old = tensor(inputs, "old") if "old" in inputs else logprobs.detach() * mask
    ratio = torch.exp((logprobs - old) * mask)
    bounded = ratio.clamp(1 - settings["clipRatioLow"], 1 + settings["clipRatioHigh"])
    if settings["importance"] == "difference":
        kept = binary_tv(logprobs.detach(), tensor(inputs, "rollout"), advantages, settings)
        terms, result = -kept * ratio * advantages, {"clipped": (1 - kept) * mask}
    else:
        terms = -torch.minimum(ratio * advantages, bounded * advantages)
        result = {"clipped": (bounded * advantages < ratio * advantages).to(DTYPE) * mask}
    if settings["importance"] != "none":
        terms = terms * importance(old - tensor(inputs, "rollout"), settings)
    if settings["beta"] > 0:
        difference = (tensor(inputs, "reference") - logprobs) * mask
        k3 = torch.exp(difference) - difference - 1
        k2 = difference**2 / 2
        terms = terms + settings["beta"] * (k2 if settings.get("klEstimator") == "k2" else k3)
        result["kl"] = k3
        result["klMean"] = over_sampled(inputs, k3)
    result["clippedShare"] = over_sampled(inputs, result["clipped"])
    result["loss"] = (weights * terms).sum()
    if settings["entropyCoefficient"] > 0:
        result["entropyMean"] = over_sampled(inputs, entropies(distribution))
        result["loss"] = result["loss"] - settings["entropyCoefficient"] * (weights * entropies(distribution)).sum()
    return result


def importance(log_weight, settings):
    weight, cap = torch.exp(log_weight).detach(), settings["importanceCap"]
    if settings["importance"] != "masked":
        return weight.clamp(min=settings.get("importanceFloor", 0.0), max=cap)
    floor = settings.get("importanceFloor", 1 / cap)
    return torch.where((weight >= floor) & (weight <= cap), weight, torch.zeros_like(weight))


def binary_tv(logprobs, rollout, advantages, settings):
    difference = torch.exp(logprobs) - torch.exp(rollout)
    out = torch.where(advantages > 0, difference > settings["differenceHigh"], -difference > settings["differenceLow"])
    return torch.where(out & (advantages != 0), 0.0, 1.0).to(DTYPE)


def gspo(inputs, settings):
    """Zheng et al. 2025 (GSPO, arXiv 2507.18071), eqs. 5 and 7: r = exp(mean over the sequence of log p − old), clipped,
    mean over sequences. With advantages that differ within a sequence (`perToken`) it is GSPO-token, eq. 13: each token
    has the sequence's ratio, and the slope of its own log-prob."""
    logprobs, _ = token_logprobs(inputs, settings)
    mask, advantages = tensor(inputs, "mask"), tensor(inputs, "advantages")
    log_ratio = (logprobs - tensor(inputs, "old")) * mask
    losses, clipped = [], torch.zeros_like(mask)
    for start, end in spans(inputs):
        there = mask[start:end] == 1
        if not there.any():
            continue
        ratio = torch.exp(log_ratio[start:end][there].mean())
        of_tokens = advantages[start:end][there]
        if settings["perToken"]:
            own = logprobs[start:end][there]
            ratio = ratio.detach() * torch.exp(own - own.detach())
        else:
            assert (of_tokens == of_tokens[0]).all()
        bounded = ratio.clamp(1 - settings["clipRatioLow"], 1 + settings["clipRatioHigh"])
        losses.append(-torch.minimum(ratio * of_tokens, bounded * of_tokens).mean())
        clipped[start:end][there] = (bounded * of_tokens < ratio * of_tokens).to(DTYPE)
    return {"loss": torch.stack(losses).mean(), "clipped": clipped, "clippedShare": over_sampled(inputs, clipped)}


def cispo(inputs, settings):
    """MiniMax 2025 (MiniMax-M1, arXiv 2506.13585), eqs. 4 and 5: −sg(min(r, 1 + high)) A log p, mean over tokens; without
    a lower bound, as they ran it."""
    logprobs, _ = token_logprobs(inputs, settings)
    mask = tensor(inputs, "mask")
    ratio = torch.exp((logprobs - tensor(inputs, "old")) * mask).detach()
    bounded = ratio.clamp(max=1 + settings["clipRatioHigh"])
    clipped = (ratio > bounded).to(DTYPE) * mask
    terms = -bounded * tensor(inputs, "advantages") * logprobs
    return {
        "loss": (token_weights(inputs, settings) * terms).sum(),
        "clipped": clipped,
        "clippedShare": over_sampled(inputs, clipped),
    }


def reinforce(inputs, settings):
    """Williams 1992: −A log p; with importance "truncated", times min(exp(log p − rollout), cap), a constant."""
    logprobs, _ = token_logprobs(inputs, settings)
    mask, advantages = tensor(inputs, "mask"), tensor(inputs, "advantages")
    terms, result = -advantages * logprobs, {}
    if settings["importance"] != "none":
        terms = terms * importance((logprobs - tensor(inputs, "rollout")) * mask, settings)
    if settings["importance"] == "difference":
        kept = binary_tv(logprobs.detach() * mask, tensor(inputs, "rollout"), advantages, settings)
        terms, result = terms * kept, {"clipped": (1 - kept) * mask}
    return {"loss": (token_weights(inputs, settings) * terms).sum(), **result}


def value(inputs, settings):
    """½ max((V − R)², (clip(V, V_old − ε, V_old + ε) − R)²), mean over tokens: PPO's squared error (eq. 9) with the clip of
    its first implementation (Dhariwal et al. 2017, OpenAI Baselines; Engstrom et al. 2020, arXiv 2005.12729, section 3);
    clip 0: without."""
    predicted, returns, values = inputs["predicted"], tensor(inputs, "returns"), tensor(inputs, "values")
    squares, clipped = (predicted - returns) ** 2, torch.zeros_like(returns)
    if settings["clip"] > 0:
        near = torch.maximum(torch.minimum(predicted, values + settings["clip"]), values - settings["clip"])
        clipped = ((near - returns) ** 2 > squares).to(DTYPE) * tensor(inputs, "mask")
        squares = torch.maximum(squares, (near - returns) ** 2)
    loss = 0.5 * (token_weights(inputs, settings) * squares).sum()
    return {"loss": loss, "clipped": clipped, "clippedShare": over_sampled(inputs, clipped)}
