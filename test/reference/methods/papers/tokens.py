"""What every loss here reads: sequences one after another, sequence s at tokens offsets[s] to offsets[s + 1];

    logits   [T, V]: the softmax of row t (over the temperature) is what token t, targets[t], was drawn from
    mask     [T], 1 where the token counts
    advantages, old, rollout, reference   [T], 0 where the mask is 0

A loss is a scalar to be minimized."""

import torch

DTYPE = torch.float64


def spans(inputs):
    return list(zip(inputs["offsets"], inputs["offsets"][1:]))


def tensor(inputs, name):
    return torch.as_tensor(inputs[name], dtype=DTYPE)


def token_logprobs(inputs, settings):
    """log p of the targets [T], and of the whole vocabulary [T, V]."""
    logprobs = torch.log_softmax(inputs["logits"] / settings.get("temperature", 1.0), dim=-1)
    return logprobs.gather(1, torch.tensor(inputs["targets"]).unsqueeze(1)).squeeze(1), logprobs


def entropies(logprobs):
    return -(logprobs.exp() * logprobs).sum(-1)


def token_weights(inputs, settings):
    """[T], 0 where the mask is 0. token: 1 / tokens of the batch (DAPO, arXiv 2503.14476, eq. 12); sequence: mean over a
    sequence's tokens, then over the sequences that have any (DeepSeekMath, eq. 3); dr-grpo: sum over tokens by a
    constant, mean over all sequences (Liu et al. 2025, arXiv 2503.20783)."""
    mask = tensor(inputs, "mask")
    weights = torch.zeros_like(mask)
    filled = sum(1 for start, end in spans(inputs) if mask[start:end].sum() > 0)
    for start, end in spans(inputs):
        count = mask[start:end].sum()
        if count == 0:
            continue
        weights[start:end] = {
            "token": 1 / mask.sum(),
            "sequence": 1 / (filled * count),
            "dr-grpo": 1 / (len(spans(inputs)) * settings.get("maxCompletionTokens", 1)),
        }[settings["aggregation"]]
    return weights * mask


def over_sampled(inputs, values):
    """Mean over the tokens that count."""
    mask = tensor(inputs, "mask")
    return (values * mask).sum() / mask.sum()


def sequence_sums(inputs, values):
    """Sums over the tokens that count, one a sequence [S]."""
    mask = tensor(inputs, "mask")
    return torch.stack([(values[start:end] * mask[start:end]).sum() for start, end in spans(inputs)])
