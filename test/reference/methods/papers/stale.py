"""A whole step on samples of another policy, from rewards to the gradient: credit and loss as one expression. Of three
policies μ has sampled (`rollout`), π_old is what the step starts from (`policy`), and π is what an update is at, the
softmax of `logits`: the decoupled objective (Hilton et al. 2022, "Batch size-invariance for policy optimization", arXiv
2110.00641), Σ w (π_old/μ) min((π/π_old) A, clip(π/π_old) A), with a proximal policy that is the step's first. Its
gradient in the step's first update, where π is π_old, is that of Σ w (π/μ) A log π. The weight π_old/μ has a bound."""

import torch

from .group_baselines import grpo, rloo
from .policy_losses import importance
from .samples import DTYPE, known, stream, whitened
from .tokens import token_logprobs


def of_critic(sample, settings):
    """[N] each: the advantage without its weight, and the weight ρ.
    V-trace by its recursion (Espeholt et al. 2018, arXiv 1802.01561, remark 1), the policy's gradient as in section 4.2:
    ρ_s (r_s + γ v_{s+1} − V_s) ∇ log π. Retrace: ρ_s (Q_s − V_s) ∇ log π, ACER's truncated term (Wang et al. 2017, arXiv
    1611.01224, section 3.2); its correction of what the truncation leaves out needs Q of actions that were not taken."""
    values, gamma = stream(sample, "values"), settings["gamma"]
    ratio = torch.exp(stream(sample, "policy") - stream(sample, "rollout"))
    rho, c = ratio.clamp(max=settings["rhoBar"]), settings["lambda"] * ratio.clamp(max=settings["cBar"])
    rewards = torch.zeros_like(values)
    if settings["klCoefficient"] > 0:
        # Of the policy that learns: it is what is held near the reference.
        rewards -= settings["klCoefficient"] * (stream(sample, "policy") - stream(sample, "reference"))
    rewards[-1] += sample["reward"]
    advantages = torch.zeros_like(values)
    # Of the step that follows: V, what v or Q are above it, and c.
    value_after, above, c_after = 0.0, 0.0, 0.0
    for s in range(len(values) - 1, -1, -1):
        if settings["target"] == "vtrace":
            advantages[s] = rewards[s] + gamma * (value_after + above) - values[s]
            delta = rho[s] * (rewards[s] + gamma * value_after - values[s])
            above = delta + gamma * c[s] * above
        else:
            advantages[s] = rewards[s] + gamma * (value_after + c_after * above) - values[s]
            above, c_after = advantages[s], c[s]
        value_after = values[s]
    return advantages, rho


def with_critic(groups, settings):
    pairs = [of_critic(sample, settings) for group in groups for sample in known(group)]
    advantages, rho = zip(*pairs)
    return torch.cat(whitened(list(advantages)) if settings["whiten"] else list(advantages)), torch.cat(rho)


def of_groups(groups, settings):
    """Truncated or masked importance sampling (Yao et al. 2025; Ling team 2025)."""
    credit = {"grpo": lambda: grpo(groups, {"scale": "group"}), "rloo": lambda: rloo(groups, {})}[settings["credit"]]()
    pairs = [
        (torch.as_tensor(advantages)[torch.tensor(sample["mask"]) == 1], stream(sample, "policy") - stream(sample, "rollout"))
        for group, of_group in zip(groups, credit["advantages"])
        for sample, advantages in zip(group["samples"], of_group)
        if advantages is not None
    ]
    advantages, log_weights = zip(*pairs)
    return torch.cat(advantages), importance(torch.cat(log_weights), settings)


def step(case, logits):
    """`logits` [T, V] of all known samples' completions, one after another."""
    groups, settings = case["groups"], case["settings"]
    samples = [sample for group in groups for sample in known(group)]
    counts = torch.tensor([bit for sample in samples for bit in sample["mask"]]) == 1
    targets = [token for sample in samples for token in sample["targets"]]
    logprobs = token_logprobs({"logits": logits, "targets": targets}, {})[0][counts]
    old = torch.cat([stream(sample, "policy") for sample in samples])
    advantages, weights = (of_groups if "credit" in settings else with_critic)(groups, settings)
    advantages, weights = advantages.to(DTYPE).detach(), weights.detach()
    ratio = torch.exp(logprobs - old)
    bounded = ratio.clamp(1 - settings["clipRatioLow"], 1 + settings["clipRatioHigh"])
    if settings["aggregation"] == "token":
        share = 1 / len(logprobs)
    else:
        share = 1 / (len(samples) * settings["maxCompletionTokens"])
    loss = -share * (weights * torch.minimum(ratio * advantages, bounded * advantages)).sum()
    plain = -share * (weights * advantages * logprobs).sum()
    return {"loss": loss, "plain": plain}
