"""The cases of stale.json: samples of another policy than the one that learns."""

import torch

from loss_cases import VOCABULARY, Batch
from papers.tokens import DTYPE, token_logprobs

SMALL = [[1, 0, None, 1], [0.5, 1, 0]]
CLIP = {"clipRatioLow": 0.2, "clipRatioHigh": 0.2, "aggregation": "token", "maxCompletionTokens": 24}
CRITIC = {**CLIP, "gamma": 0.97, "lambda": 0.95, "rhoBar": 1.5, "cBar": 1.0, "klCoefficient": 0.0, "whiten": False}


class Stale(Batch):
    """`first`: an update at the policy that the step starts from, else at one that has moved away from it."""

    def stale(self, *, first, streams):
        groups = self.groups(SMALL, streams=streams, turns=2)
        for group in groups:
            for sample in group["samples"]:
                sample["logits"] = [[self.normal(0, 1.2) for _ in range(VOCABULARY)] for _ in sample["mask"]]
                sample["targets"] = [self.random.randrange(VOCABULARY) for _ in sample["mask"]]
                logits = torch.tensor(sample["logits"], dtype=DTYPE)
                now = token_logprobs({"logits": logits, "targets": sample["targets"]}, {})[0].tolist()
                sample["policy"] = now if first else self.near(now, 0.3)
                sample["rollout"] = self.near(sample["policy"], 1.0)
                if "reference" in sample:
                    sample["reference"] = self.near(sample["policy"], 0.4)
        return groups


def case(seed, name, settings, *, first, streams=()):
    update = "the first update" if first else "a later update"
    return {
        "name": f"{name}, {update}",
        "first": first,
        "settings": settings,
        "groups": Stale(seed).stale(first=first, streams=streams),
    }


def cases():
    seed = 700
    for first in (True, False):
        for target in ("vtrace", "retrace"):
            for name, changes in (
                ("", {}),
                (", λ 1, ρ̄ and c̄ 1", {"lambda": 1.0, "rhoBar": 1.0}),
                (", whitened, KL in the reward", {"whiten": True, "klCoefficient": 0.1}),
            ):
                streams = ("values", "reference") if "klCoefficient" in changes else ("values",)
                yield case(seed, target + name, {"target": target, **CRITIC, **changes}, first=first, streams=streams)
                seed += 1
        for rule in ("truncated", "masked"):
            settings = {"credit": "grpo", **CLIP, "importance": rule, "importanceCap": 2.0}
            yield case(seed, f"grpo, {rule} importance", settings, first=first)
            seed += 1
        settings = {"credit": "rloo", **CLIP, "aggregation": "dr-grpo", "importance": "truncated", "importanceCap": 3.0}
        yield case(seed, "rloo, truncated importance", settings, first=first)
        seed += 1
