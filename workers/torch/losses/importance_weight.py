"""Corrects for an engine that sampled with other probabilities than those that the loss speaks of."""

import torch


@torch.no_grad()
def importance_weight(target: torch.Tensor, rollout: torch.Tensor, objective: dict) -> torch.Tensor:
    """ρ = exp(target − rollout), a constant: min(ρ, cap) (truncated importance sampling, Yao et al. 2025; Ionides 2008), or by
    `mask` ρ within [1 / cap, cap] and 0 outside (IcePop, Ling team 2025)."""
    cap = objective["importanceCap"]
    weight = torch.exp(target - rollout)
    if objective.get("importanceRule", "truncate") == "truncate":
        return weight.clamp(max=cap)
    return torch.where((weight >= 1 / cap) & (weight <= cap), weight, torch.zeros_like(weight))
