"""Corrects for an engine that sampled with other probabilities than those that the loss speaks of."""

import torch


@torch.no_grad()
def importance_weight(target: torch.Tensor, rollout: torch.Tensor, objective: dict) -> torch.Tensor:
    """ρ = exp(target − rollout), a constant: within [floor, cap] (truncated importance sampling, Yao et al. 2025; Ionides 2008),
    or by `mask` ρ there and 0 outside (IcePop, Ling team 2025). The floor of `mask` is 1 / cap where there is none, else 0."""
    cap, floor = objective["importanceCap"], objective.get("importanceFloor")
    weight = torch.exp(target - rollout)
    if objective.get("importanceRule", "truncate") != "mask":
        return weight.clamp(min=floor, max=cap)
    low = 1 / cap if floor is None else floor
    return torch.where((weight >= low) & (weight <= cap), weight, torch.zeros_like(weight))


def by_difference(objective: dict) -> bool:
    """Whether tokens are left out by how far their probability has moved."""
    return objective["importanceCap"] > 0 and objective.get("importanceRule") == "difference"


@torch.no_grad()
def within_difference(logprobs: torch.Tensor, rollout: torch.Tensor, advantages: torch.Tensor, objective: dict) -> torch.Tensor:
    """1 where a token may still be learnt from, 0 where its probability has moved from the one that it was sampled with as far
    as its advantage would move it on: DPPO's Binary-TV (Qi et al. 2026, arXiv 2602.04879)."""
    moved = torch.exp(logprobs) - torch.exp(rollout)
    too_high = (advantages > 0) & (moved > objective["differenceHigh"])
    too_low = (advantages < 0) & (moved < -objective["differenceLow"])
    return (~(too_high | too_low)).to(logprobs.dtype)
