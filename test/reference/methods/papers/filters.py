"""Which groups a step learns from, and what a long completion costs."""

from .group_baselines import rewards_of
from .samples import SMALLEST_DEVIATION


def deviation(group):
    """Standard deviation of the known rewards, with n − 1; 0 for fewer than two."""
    rewards = rewards_of(group)
    return rewards.std().item() if len(rewards) > 1 else 0.0


def dynamic_sampling(groups, settings):
    """Yu et al. 2025 (DAPO, arXiv 2503.14476), eq. 11: a group stays if some, but not all, of its samples are right, which
    a reward of 1 says; `by` "reward": if not all rewards are equal. The others are replaced by sampling on."""
    if settings["by"] == "reward":
        return {"kept": [deviation(group) > SMALLEST_DEVIATION for group in groups]}
    right = [[reward == 1 for reward in rewards_of(group).tolist()] for group in groups]
    return {"kept": [0 < sum(of_group) < len(of_group) for of_group in right]}


def top_deviation(groups, settings):
    """Wang et al. 2025 (RAGEN, arXiv 2504.20073), StarPO-S: the share `keep` of the groups with the largest standard
    deviation of rewards, rounded down; of equal ones the earlier. A group with fewer than two known rewards has no
    deviation, and is not counted; a share of 1 keeps all."""
    if settings["keep"] == 1:
        return {"kept": [True] * len(groups)}
    measured = [g for g in range(len(groups)) if len(rewards_of(groups[g])) > 1]
    ranked = sorted(measured, key=lambda g: -deviation(groups[g]))
    kept = set(ranked[: int(settings["keep"] * len(ranked))])
    return {"kept": [g in kept for g in range(len(groups))]}


def soft_overlong(groups, settings):
    """Yu et al. 2025 (DAPO), eq. 13, added to the reward: 0 up to L_max − L_cache tokens, from there down to −1 at L_max
    in a straight line, −1 beyond. `counts` says whether a length has observation tokens in it."""
    longest, cache = settings["maxTokens"], settings["cacheTokens"]

    def penalty(sample):
        length = sum(sample["mask"]) if settings["counts"] == "sampled" else len(sample["mask"])
        if length <= longest - cache:
            return 0.0
        return ((longest - cache) - length) / cache if length <= longest else -1.0

    return {
        "rewards": [
            [None if s["reward"] is None else s["reward"] + penalty(s) for s in group["samples"]] for group in groups
        ]
    }
