"""The cases of losses.json: method, settings, inputs."""

import torch

from batches import Inputs, short
from papers.tokens import DTYPE, token_logprobs

VOCABULARY = 7


class Batch(Inputs):
    """Sequences of sampled tokens with observations in between."""

    def tokens(self, sequences, *, empty=None):
        """`empty`: a sequence of which nothing counts."""
        offsets, mask = [0], []
        for s in range(sequences):
            of_sequence = self.sample(0.0, turns=self.random.randint(1, 2))["mask"]
            mask += [0] * len(of_sequence) if s == empty else of_sequence
            offsets.append(len(mask))
        logits = [[self.normal(0, 1.2) for _ in range(VOCABULARY)] for _ in mask]
        targets = [self.random.randrange(VOCABULARY) for _ in mask]
        return {"offsets": offsets, "mask": mask, "logits": logits, "targets": targets}

    def with_streams(self, inputs, settings, deviations):
        """Adds log-probs under other weights, `deviations` away from those of the logits; 0 where the mask is 0."""
        logprobs, _ = token_logprobs({**inputs, "logits": torch.tensor(inputs["logits"], dtype=DTYPE)}, settings)
        logprobs = logprobs.tolist()
        for name, deviation in deviations.items():
            near = self.near(inputs["old"] if name == "rollout" and "old" in inputs else logprobs, deviation)
            inputs[name] = self.masked(inputs, near)
        return inputs

    def masked(self, inputs, values):
        return [value if bit else 0.0 for bit, value in zip(inputs["mask"], values)]

    def advantages(self, inputs, *, per_token):
        values = []
        for start, end in zip(inputs["offsets"], inputs["offsets"][1:]):
            of_sequence = short(self.random.choice([-1, 1]) * (0.2 + abs(self.random.gauss(0, 1))))
            values += [self.normal(0, 1) if per_token else of_sequence for _ in range(start, end)]
        inputs["advantages"] = self.masked(inputs, values)
        return inputs


def case(method, name, settings, inputs):
    return {"name": f"{method}: {name}", "method": method, "settings": settings, **inputs}


PLAIN = {
    "clipRatioLow": 0.2,
    "clipRatioHigh": 0.2,
    "aggregation": "token",
    "maxCompletionTokens": 16,
    "beta": 0.0,
    "entropyCoefficient": 0.0,
    "importance": "none",
    "importanceCap": 2.0,
    "temperature": 1.0,
}


DPPO = {"differenceLow": 0.1, "differenceHigh": 0.1}


def surrogate(seed, name, changes, *, first=False, per_token=False, far=0.35, empty=None):
    settings = {**PLAIN, **changes}
    batch = Batch(seed)
    inputs = batch.tokens(4, empty=empty)
    deviations = {} if first else {"old": far}
    if settings["importance"] != "none":
        deviations["rollout"] = 0.6
    if settings["beta"] > 0:
        deviations["reference"] = 0.5
    batch.with_streams(inputs, settings, deviations)
    return case("clipped-surrogate", name, settings, batch.advantages(inputs, per_token=per_token))


def surrogates():
    yield surrogate(500, "PPO, token mean", {}, per_token=True)
    yield surrogate(501, "GRPO, sequence mean, k3", {"aggregation": "sequence", "beta": 0.1})
    yield surrogate(502, "DAPO, clip-higher", {"clipRatioHigh": 0.28})
    yield surrogate(503, "Dr. GRPO", {"aggregation": "dr-grpo"})
    yield surrogate(504, "the first update", {"aggregation": "sequence", "beta": 0.04}, first=True)
    yield surrogate(513, "the first update, truncated importance", {"importance": "truncated"}, first=True)
    yield surrogate(505, "entropy bonus, token mean", {"entropyCoefficient": 0.01})
    yield surrogate(506, "entropy bonus, sequence mean, temperature 0.8", {"aggregation": "sequence", "entropyCoefficient": 0.05, "temperature": 0.8})
    yield surrogate(507, "truncated importance, k3", {"importance": "truncated", "importanceCap": 1.5, "beta": 0.05})
    yield surrogate(508, "masked importance", {"importance": "masked", "importanceCap": 1.5}, per_token=True)
    yield surrogate(509, "masked importance, k3, sequence mean", {"importance": "masked", "beta": 0.1, "aggregation": "sequence"})
    yield surrogate(510, "a sequence of which nothing counts, sequence mean", {"aggregation": "sequence"}, empty=1)
    yield surrogate(511, "a sequence of which nothing counts, Dr. GRPO", {"aggregation": "dr-grpo"}, empty=2)
    yield surrogate(512, "REINFORCE++-baseline, k2", {"beta": 0.1, "klEstimator": "k2"}, per_token=True)
    yield surrogate(514, "the first update, k2", {"beta": 0.2, "klEstimator": "k2"}, first=True)
    yield surrogate(515, "IcePop, 0.5 to 5", {"importance": "masked", "importanceCap": 5.0, "importanceFloor": 0.5}, per_token=True)
    yield surrogate(516, "truncated importance, 0.7 to 1.5", {"importance": "truncated", "importanceCap": 1.5, "importanceFloor": 0.7})
    yield surrogate(517, "decoupled, cap 100", {"importance": "truncated", "importanceCap": 100.0}, far=0.5)
    yield surrogate(518, "DPPO", {"importance": "difference", "importanceCap": 100.0, **DPPO}, per_token=True, far=0.6)
    yield surrogate(519, "DPPO, truncated, k3", {"importance": "difference", **DPPO, "differenceHigh": 0.05, "beta": 0.1}, far=0.6)
    yield surrogate(520, "DPPO, the first update", {"importance": "difference", **DPPO}, first=True, per_token=True)
    yield surrogate(666, "ratios above 3", {}, per_token=True, far=1.5)


def other_policy_losses():
    for seed, (name, changes, per_token, far) in enumerate(
        [
            ("sequence ratios", {}, False, 0.3),
            ("narrow bounds", {"clipRatioLow": 0.003, "clipRatioHigh": 0.004}, False, 0.1),
            ("GSPO-token", {"perToken": True}, True, 0.3),
        ]
    ):
        settings = {"clipRatioLow": 0.1, "clipRatioHigh": 0.15, "perToken": False, **changes}
        batch = Batch(530 + seed)
        inputs = batch.with_streams(batch.tokens(5, empty=3 if seed == 0 else None), settings, {"old": far})
        yield case("gspo", name, settings, batch.advantages(inputs, per_token=per_token))
    for seed, (name, high) in enumerate([("high 0.2", 0.2), ("high 1", 1.0), ("never bound", 50.0)]):
        settings = {"clipRatioHigh": high, "aggregation": "token"}
        batch = Batch(540 + seed)
        inputs = batch.with_streams(batch.tokens(4), settings, {"old": 0.5})
        yield case("cispo", name, settings, batch.advantages(inputs, per_token=seed == 1))
    for seed, (name, aggregation, importance, changes) in enumerate(
        [
            ("token mean", "token", "none", {}),
            ("sequence mean", "sequence", "none", {}),
            ("truncated importance", "token", "truncated", {}),
            ("IcePop, 0.5 to 5", "token", "masked", {"importanceCap": 5.0, "importanceFloor": 0.5}),
            ("DPPO", "token", "difference", DPPO),
        ]
    ):
        settings = {"aggregation": aggregation, "importance": importance, "importanceCap": 1.5, **changes}
        batch = Batch(550 + seed)
        inputs = batch.tokens(4)
        if importance != "none":
            batch.with_streams(inputs, settings, {"rollout": 0.5})
        yield case("reinforce", name, settings, batch.advantages(inputs, per_token=True))


def values():
    for seed, (name, clip, aggregation) in enumerate(
        [("clip 0.2", 0.2, "token"), ("without a clip", 0.0, "token"), ("clip 0.3, sequence mean", 0.3, "sequence")]
    ):
        batch = Batch(560 + seed)
        inputs = batch.tokens(4)
        del inputs["logits"], inputs["targets"]
        inputs["values"] = batch.masked(inputs, [batch.normal(0.4, 0.4) for _ in inputs["mask"]])
        inputs["returns"] = batch.masked(inputs, [batch.normal(0.5, 0.5) for _ in inputs["mask"]])
        inputs["predicted"] = [short(value + batch.random.gauss(0, 0.4)) for value in inputs["values"]]
        yield case("value", name, {"clip": clip, "aggregation": aggregation}, inputs)


def teachers():
    for seed, (name, changes, weights) in enumerate(
        [
            ("reverse KL", {"divergence": "reverse-kl"}, [1.0]),
            ("forward KL, temperature 2", {"divergence": "forward-kl", "temperature": 2.0}, [1.0]),
            ("JSD 0.5", {"divergence": "jsd", "beta": 0.5}, [1.0]),
            ("JSD 0.1, temperature 0.7", {"divergence": "jsd", "beta": 0.1, "temperature": 0.7}, [1.0]),
            ("reverse KL, two teachers", {"divergence": "reverse-kl", "temperature": 1.5}, [0.25, 0.75]),
            ("forward KL, three teachers, sequence mean", {"divergence": "forward-kl", "aggregation": "sequence"}, [0.5, 0.25, 0.25]),
        ]
    ):
        settings = {"temperature": 1.0, "aggregation": "token", **changes}
        batch = Batch(580 + seed)
        inputs = batch.tokens(3)
        inputs["teachers"] = [
            {"weight": weight, "logits": [[batch.normal(0, 1.5) for _ in row] for row in inputs["logits"]]}
            for weight in weights
        ]
        yield case("distillation", name, settings, inputs)
    for seed, (name, negative) in enumerate([("imitation", 0.0), ("negatives", 0.5), ("negatives only", 1.0)]):
        batch = Batch(600 + seed)
        inputs = batch.tokens(4)
        of_sequences = []
        for start, end in zip(inputs["offsets"], inputs["offsets"][1:]):
            weight = batch.random.choice([0.25, 0.5, 1.0]) * (-1 if batch.random.random() < negative else 1)
            of_sequences += [weight] * (end - start)
        inputs["weights"] = batch.masked(inputs, of_sequences)
        yield case("supervised", name, {"aggregation": "token"}, inputs)


def preferences():
    for seed, (name, settings) in enumerate(
        [
            ("β 0.1", {"variant": "sigmoid", "beta": 0.1, "labelSmoothing": 0.0}),
            ("β 0.5", {"variant": "sigmoid", "beta": 0.5, "labelSmoothing": 0.0}),
            ("label smoothing 0.1", {"variant": "sigmoid", "beta": 0.3, "labelSmoothing": 0.1}),
            ("IPO", {"variant": "ipo", "beta": 0.1, "labelSmoothing": 0.0}),
        ]
    ):
        batch = Batch(620 + seed)
        inputs = batch.with_streams(batch.tokens(4), settings, {"reference": 0.5})
        inputs["pairs"] = [[0, 1], [3, 2]]
        yield case("dpo", name, settings, inputs)
    for seed, (name, settings, shift) in enumerate(
        [
            ("z0 given", {"beta": 0.1, "lambdaD": 1.0, "lambdaU": 1.0, "z0": 0.35}, None),
            ("z0 estimated", {"beta": 0.3, "lambdaD": 1.0, "lambdaU": 1.33}, 0.8),
            ("z0 estimated below 0", {"beta": 0.2, "lambdaD": 1.5, "lambdaU": 1.0}, -0.8),
        ]
    ):
        batch = Batch(640 + seed)
        inputs = batch.with_streams(batch.tokens(4), settings, {"reference": 0.5})
        inputs["desirable"] = [True, False, False, True]
        if shift is not None:
            sums = [batch.normal(-12, 3) for _ in range(4)]
            inputs["mismatched"] = {
                "policy": [short(value + shift + batch.random.gauss(0, 0.4)) for value in sums],
                "reference": sums,
            }
        yield case("kto", name, settings, inputs)


def cases():
    for family in (surrogates, other_policy_losses, values, teachers, preferences):
        yield from family()
