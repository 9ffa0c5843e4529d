"""Advantages from the rewards of one task's samples, and from one greedy sample."""

import torch

from .samples import DTYPE, at_sampled, known, on_sampled, per_sample, sampled, standardized, stream, whitened


def rewards_of(group):
    return torch.tensor([sample["reward"] for sample in known(group)], dtype=DTYPE)


def spread(group, advantages):
    return [on_sampled(sample, advantage) for sample, advantage in zip(known(group), advantages)]


def grpo(groups, settings):
    """Shao et al. 2024 (arXiv 2402.03300), section 4.1.2: A = (r − mean) / std.
    scale "none": Liu et al. 2025 (Dr. GRPO, arXiv 2503.20783), section 3.2: A = r − mean."""

    def of_group(group):
        rewards = rewards_of(group)
        centered = rewards - rewards.mean()
        return spread(group, standardized(rewards) if settings["scale"] == "group" else centered)

    return {"advantages": per_sample(groups, of_group)}


def rloo(groups, settings):
    """Ahmadian et al. 2024 (RLOO, arXiv 2402.14740): A_i = r_i − 1/(k − 1) Σ_{j≠i} r_j.
    A sample without others has nothing to be compared with: 0."""

    def of_group(group):
        rewards = rewards_of(group)
        others = len(rewards) - 1
        if others == 0:
            return spread(group, torch.zeros_like(rewards))
        return spread(group, [r - (rewards.sum() - r) / others for r in rewards])

    return {"advantages": per_sample(groups, of_group)}


def remax(groups, settings):
    """Li et al. 2023 (ReMax, arXiv 2310.10505), algorithm 1: A = r − r(greedy).
    Without the greedy sample's reward the group has no baseline and is left out."""

    def of_group(group):
        return spread(group, rewards_of(group) - group["greedy_reward"])

    return {"advantages": per_sample(without_baseline_left_out(groups), of_group)}


def without_baseline_left_out(groups):
    def left_out(group):
        return {**group, "samples": [{**sample, "reward": None} for sample in group["samples"]]}

    return [left_out(group) if group["greedy_reward"] is None else group for group in groups]


def reinforce_plus_plus(groups, settings):
    """Hu 2025 (REINFORCE++, arXiv 2501.03262), eqs. 8 to 10: r_t = 1(t is last) R − β k1_t with k1 = log π(a_t) − log π_ref(a_t) under
    the policy that sampled; A_t = Σ_{s≥t} r_s, standardized over all tokens of the batch."""
    beta = settings["klCoefficient"]

    def of_group(group):
        for sample in known(group):
            rewards = -beta * (stream(sample, "rollout") - stream(sample, "reference"))
            rewards[-1] += sample["reward"]
            yield rewards.flip(0).cumsum(0).flip(0)

    return {"advantages": over_batch(groups, of_group)}


def reinforce_plus_plus_baseline(groups, settings):
    """Hu 2025, REINFORCE++-baseline: the group's mean is the baseline, then standardized over all tokens of
    the batch (the KL is a term of the loss there, not of the reward)."""

    def of_group(group):
        rewards = rewards_of(group)
        for sample, advantage in zip(known(group), rewards - rewards.mean()):
            yield torch.full((len(sampled(sample)),), advantage.item(), dtype=DTYPE)

    return {"advantages": over_batch(groups, of_group)}


def over_batch(groups, of_group):
    """Standardized over all tokens of all groups, and laid out over the completions."""
    shaped = per_sample(groups, of_group)
    flat = iter(whitened([advantage for group in shaped for advantage in group]))
    return [
        [None if (a := next(flat)) is None else at_sampled(sample, a) for sample in group["samples"]] for group in groups
    ]
