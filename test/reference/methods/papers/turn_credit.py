"""Advantages that differ from turn to turn without a critic."""

import torch

from .group_baselines import rewards_of
from .samples import DTYPE, known, per_sample, standardized


def step_rewards(sample):
    """One a turn [K]: the turn's process reward, where there are any, and the outcome at the last."""
    rewards = torch.tensor(sample.get("turn_rewards", [0.0] * len(sample["turns"])), dtype=DTYPE)
    rewards[-1] += sample["reward"]
    return rewards


def discounted(rewards, gamma):
    """Σ_{j≥k} γ^{j−k} r_j [K]."""
    return torch.stack([sum(gamma ** (j - k) * rewards[j] for j in range(k, len(rewards))) for k in range(len(rewards))])


def over_turns(sample, advantages):
    """One number a turn, on all tokens of it [T]."""
    laid = torch.zeros(len(sample["mask"]), dtype=DTYPE)
    for turn, advantage in zip(sample["turns"], advantages):
        laid[turn["start"] : turn["end"]] = advantage
    return laid


def scaled(values, scale):
    values = torch.as_tensor(values, dtype=DTYPE)
    return standardized(values) if scale == "group" else values - values.mean()


def gigpo(groups, settings):
    """Feng et al. 2025 (GiGPO, arXiv 2505.10978), eqs. 3 and 5 to 8: A = A_episode + ω A_step. A_episode compares the sums
    of rewards of the task's episodes; A_step compares, among all turns of the task's episodes that start in the same
    state, the discounted rewards from that turn on. F_norm is the standard deviation (scale "group") or 1 ("none")."""

    def of_group(group):
        samples = known(group)
        rewards = [step_rewards(sample) for sample in samples]
        episode = scaled([r.sum() for r in rewards], settings["scale"])
        returns = [discounted(r, settings["gamma"]) for r in rewards]
        same = {}
        for i, sample in enumerate(samples):
            for k, state in enumerate(sample["states"]):
                same.setdefault(state, []).append((i, k))
        step = [torch.zeros(len(sample["turns"]), dtype=DTYPE) for sample in samples]
        for places in same.values():
            for (i, k), advantage in zip(places, scaled([returns[i][k] for i, k in places], settings["scale"])):
                step[i][k] = advantage
        return [
            over_turns(sample, episode[i] + settings["omega"] * step[i]) for i, sample in enumerate(samples)
        ]

    return {"advantages": per_sample(groups, of_group)}


def process(groups, settings):
    """A_k = w_outcome A_grpo + w_process Σ_{j≥k} γ^{j−k} r̃_j for all tokens of turn k, r̃ the standardized process rewards.
    over "group": standardized over all turns of all samples; with w_outcome 0, w_process 1 and γ 1 this is process
    supervision of DeepSeekMath (Shao et al. 2024, arXiv 2402.03300, section 4.1.3).
    over "turn": standardized over the samples' rewards of the same turn, as in MT-GRPO (Zeng et al. 2025, arXiv
    2505.11821)."""

    def of_group(group):
        samples = known(group)
        outcome = standardized(rewards_of(group))
        rewards = [torch.tensor(sample["turn_rewards"], dtype=DTYPE) for sample in samples]
        if settings["over"] == "group":
            normalized = torch.split(standardized(torch.cat(rewards)), [len(r) for r in rewards])
        else:
            normalized = [torch.zeros_like(r) for r in rewards]
            for k in range(max(len(r) for r in rewards)):
                there = [i for i, r in enumerate(rewards) if k < len(r)]
                for i, value in zip(there, standardized([rewards[i][k] for i in there])):
                    normalized[i][k] = value
        return [
            over_turns(
                sample,
                settings["outcomeWeight"] * outcome[i]
                + settings["processWeight"] * discounted(normalized[i], settings["gamma"]),
            )
            for i, sample in enumerate(samples)
        ]

    return {"advantages": per_sample(groups, of_group)}
