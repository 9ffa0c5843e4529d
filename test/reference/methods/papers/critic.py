"""Advantages and returns from a critic's values. An episode is over its sampled tokens only: what follows the last token
of a turn is the first token of the next, and the value after the last token is 0, also where the episode was cut off."""

import torch

from .samples import DTYPE, at_sampled, known, per_sample, sampled, stream, whitened


def token_rewards(sample, settings, policy="rollout"):
    """[N]: −β k1 of every sampled token, k1 = log π(a_t) − log π_ref(a_t) under the policy that sampled, or another one
    (Ziegler et al. 2019, arXiv 1909.08593, eq. 2), and the outcome at the last."""
    beta = settings["klCoefficient"]
    rewards = torch.zeros(len(sampled(sample)), dtype=DTYPE)
    if beta != 0:
        rewards -= beta * (stream(sample, policy) - stream(sample, "reference"))
    rewards[-1] += sample["reward"]
    return rewards


def gae(rewards, values, gamma, lambda_):
    """Schulman et al. 2016 (arXiv 1506.02438), eq. 16: δ_t = r_t + γ V_{t+1} − V_t, A_t = Σ_l (γλ)^l δ_{t+l}."""
    following = torch.cat([values[1:], torch.zeros(1, dtype=DTYPE)])
    deltas = rewards + gamma * following - values
    return torch.stack(
        [sum((gamma * lambda_) ** (s - t) * deltas[s] for s in range(t, len(deltas))) for t in range(len(deltas))]
    )


def with_critic(groups, settings, of_sample):
    """`of_sample` gives advantages and returns at the sampled tokens [N], and the weights that the former get, if any:
    after they are whitened, for a mean that is taken off is a baseline, and leaves the gradient without bias only inside
    the weight."""
    pairs = per_sample(groups, lambda group: [of_sample(sample) for sample in known(group)])
    flat = [None if pair is None else pair[0] for group in pairs for pair in group]
    weights = [1 if pair is None or len(pair) < 3 else pair[2] for group in pairs for pair in group]
    scaled = whitened(flat) if settings["whiten"] else flat
    advantages = iter([None if a is None else weight * a for a, weight in zip(scaled, weights)])
    laid = {"advantages": [], "returns": []}
    for group, of_group in zip(groups, pairs):
        laid["advantages"].append(
            [None if (a := next(advantages)) is None else at_sampled(s, a) for s in group["samples"]]
        )
        laid["returns"].append(
            [None if pair is None else at_sampled(s, pair[1]) for s, pair in zip(group["samples"], of_group)]
        )
    return laid


def ppo(groups, settings):
    """Schulman et al. 2017 (arXiv 1707.06347), eqs. 11 and 12, with the per-token KL in the reward; returns A + V of
    before the whitening."""

    def of_sample(sample):
        values = stream(sample, "values")
        advantages = gae(token_rewards(sample, settings), values, settings["gamma"], settings["lambda"])
        return advantages, advantages + values

    return with_critic(groups, settings, of_sample)


def vapo(groups, settings):
    """Yue et al. 2025 (VAPO, arXiv 2504.05118), section 4.2: λ = 1 − 1/(α l) for the policy, l the sampled tokens;
    λ = 1 for the returns of the critic (decoupled GAE, Yuan et al. 2025, arXiv 2503.01491). For α l < 1 the formula is
    negative, which its authors never meet: held at 0."""

    def of_sample(sample):
        values, rewards = stream(sample, "values"), token_rewards(sample, settings)
        lambda_ = max(0.0, 1 - 1 / (settings["alpha"] * len(values)))
        advantages = gae(rewards, values, settings["gamma"], lambda_)
        return advantages, gae(rewards, values, settings["gamma"], 1.0) + values

    return with_critic(groups, settings, of_sample)


def bi_level(groups, settings):
    """Wang et al. 2025 (VAGEN, arXiv 2510.16907), section "Bi-Level GAE". Over turns k, with V_k the value at the turn's
    last token and r_k the turn's reward (its process reward, the outcome at the last turn, the KL of its last token):
    δ_k = r_k + γ_turn V_{k+1} − V_k, A_k = δ_k + γ_turn λ_turn A_{k+1}.
    Within the turn: the last token has A_k, those before δ_i = −β k1_i + γ_token V_{i+1} − V_i and
    A_i = δ_i + γ_token λ_token A_{i+1}."""

    def of_sample(sample):
        values = stream(sample, "values")
        rewards = token_rewards(sample, settings)
        place = {t: n for n, t in enumerate(sampled(sample))}
        turns = [(place[turn["start"]], place[turn["end"] - 1]) for turn in sample["turns"]]
        for (_, last), reward in zip(turns, sample["turn_rewards"]):
            rewards[last] += reward
        advantages = torch.zeros_like(values)
        next_value, next_advantage = 0.0, 0.0
        for first, last in reversed(turns):
            delta = rewards[last] + settings["gammaTurn"] * next_value - values[last]
            advantages[last] = delta + settings["gammaTurn"] * settings["lambdaTurn"] * next_advantage
            next_value, next_advantage = values[last], advantages[last]
            for i in range(last - 1, first - 1, -1):
                delta = rewards[i] + settings["gammaToken"] * values[i + 1] - values[i]
                advantages[i] = delta + settings["gammaToken"] * settings["lambdaToken"] * advantages[i + 1]
        return advantages, advantages + values

    return with_critic(groups, settings, of_sample)


def vtrace(groups, settings):
    """Espeholt et al. 2018 (IMPALA, arXiv 1802.01561), eq. 1: v_s = V_s + Σ_{t≥s} γ^{t−s} (Π_{s≤i<t} c_i) ρ_t (r_t +
    γ V_{t+1} − V_t) with ρ = min(ρ̄, π/μ) and c = λ min(c̄, π/μ) (remark 2); the policy's advantage, section 4.2, is
    ρ_s (r_s + γ v_{s+1} − V_s). π are the weights that learn, μ those that sampled; a KL in the reward is π's."""

    def of_sample(sample):
        values, rewards = stream(sample, "values"), token_rewards(sample, settings, "policy")
        gamma = settings["gamma"]
        ratio = torch.exp(stream(sample, "policy") - stream(sample, "rollout"))
        rho = ratio.clamp(max=settings["rhoBar"])
        c = settings["lambda"] * ratio.clamp(max=settings["cBar"])
        after = torch.cat([values[1:], torch.zeros(1, dtype=DTYPE)])
        deltas = rho * (rewards + gamma * after - values)
        targets = torch.stack(
            [
                values[s] + sum(gamma ** (t - s) * torch.prod(c[s:t]) * deltas[t] for t in range(s, len(values)))
                for s in range(len(values))
            ]
        )
        following = torch.cat([targets[1:], torch.zeros(1, dtype=DTYPE)])
        return rewards + gamma * following - values, targets, rho

    return with_critic(groups, settings, of_sample)


def retrace(groups, settings):
    """Munos et al. 2016 (Retrace(λ), arXiv 1606.02647), with V(s) in the place of Q(s, a), for the critic is one
    of states: Q_s = r_s + γ V_{s+1} + γ c_{s+1} (Q_{s+1} − V_{s+1}), c = λ min(c̄, π/μ). The advantage is ρ_s (Q_s − V_s),
    ρ = min(ρ̄, π/μ) (ACER, Wang et al. 2017, arXiv 1611.01224, section 3.2, its truncated term), and the critic's target
    V_s + ρ_s (Q_s − V_s) (section 3.1)."""

    def of_sample(sample):
        values, rewards = stream(sample, "values"), token_rewards(sample, settings, "policy")
        gamma = settings["gamma"]
        ratio = torch.exp(stream(sample, "policy") - stream(sample, "rollout"))
        rho = ratio.clamp(max=settings["rhoBar"])
        c = settings["lambda"] * ratio.clamp(max=settings["cBar"])
        q = torch.zeros_like(values)
        for s in range(len(values) - 1, -1, -1):
            q[s] = rewards[s]
            if s + 1 < len(values):
                q[s] += gamma * values[s + 1] + gamma * c[s + 1] * (q[s + 1] - values[s + 1])
        advantages = q - values
        return advantages, values + rho * advantages, rho

    return with_critic(groups, settings, of_sample)
