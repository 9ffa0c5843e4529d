"""One learner step, by the equations of docs/batch.md: the updates of a batch, of the policy and of its critic."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from adam import Adam
from batch import Batch
from check import check_finite
from fault import Fault
from losses import Loss
from losses.distill import shares
from losses.token_weights import token_weights
from losses.value import value
from network import MASKED, output
from packing import Rows, micro_batches
from ranks import Ranks


@dataclass
class Surroundings:
    """How a step computes. `unknown` [V]: ids that no token has. `advance` hears of every micro-batch, and with
    True of every update, and raises where the step is to stop."""

    ranks: Ranks
    compute: dict
    one_row: bool
    unknown: torch.Tensor | None
    advance: Callable[..., None]

    def pack(self, batch: Batch, sequences: list[int], vocabulary: int) -> list[Rows]:
        # Logits are the largest array: of half a gigabyte at most, unless somebody has said how much memory there is.
        cuda = self.ranks.device.type == "cuda"
        fast = max(1, min(16384 if cuda else 4096, 2 ** (30 if cuda else 27) // vocabulary))
        return micro_batches(batch, sequences, self.compute["microBatchTokens"] or fast, self.one_row)

    def run(self, model: nn.Module, packed: list[Rows]) -> Iterator[tuple[Rows, torch.Tensor, bool]]:
        """This rank's micro-batches, each with what the model says, and whether it counts."""
        for rows, counts in self.ranks.own(packed):
            yield rows, output(model, rows, self.compute["precision"], self.ranks.device), counts
            self.advance()

    def per_token(self, model: nn.Module, packed: list[Rows], total: int, of: Callable) -> torch.Tensor:
        """`of(rows, output)` of each counted token [T], 0 elsewhere."""
        values = torch.zeros(total)
        with torch.no_grad():
            for rows, out, counts in self.run(model, packed):
                if counts:
                    values[rows.sources] = of(rows, out).cpu()
        return self.ranks.sum(values)


def distribution(logits: torch.Tensor, rows: Rows, batch: Batch, loss_from: tuple[float, int], unknown) -> torch.Tensor:
    """Log-probs [n, V] of the softmax of logits / temperature, among the ids that each token was sampled among where there is a
    top-k, else among all that the tokenizer knows."""
    temperature, top_k = loss_from
    scaled = logits / temperature
    if unknown is not None:
        scaled = scaled.masked_fill(unknown.to(scaled.device), MASKED)
    if top_k > 0 and batch.kept is not None:
        cut = torch.zeros(scaled.shape, dtype=torch.bool)
        for i, source in enumerate(rows.sources.tolist()):
            ids = batch.kept[batch.kept_offsets[source] : batch.kept_offsets[source + 1]].long()
            if len(ids) > 0:
                cut[i] = True
                cut[i, ids] = False
        scaled = scaled.masked_fill(cut.to(scaled.device), MASKED)
    return torch.log_softmax(scaled, -1)


def chosen(log_probs: torch.Tensor, rows: Rows, batch: Batch) -> torch.Tensor:
    """Of the tokens that are there."""
    return log_probs.gather(1, batch.tokens[rows.sources].long().to(log_probs.device)[:, None])[:, 0]


def entropy_of(log_probs: torch.Tensor) -> torch.Tensor:
    """Nats, [n]."""
    return -(log_probs.exp() * log_probs).sum(-1)


def moves_weights(batch: Batch, loss: Loss, sequence: int) -> bool:
    """A sequence whose every advantage is 0 has no gradient, unless the loss moves the weights by something else."""
    return loss.moves_all or bool((batch.streams["advantages"][batch.span(sequence)] != 0).any())


class PolicyUpdates:
    """The updates of the policy by a loss."""

    def __init__(
        self,
        around: Surroundings,
        model: nn.Module,
        adam: Adam,
        batch: Batch,
        loss: Loss,
        optimizer: dict,
        vocabulary: int,
        reference: nn.Module | None,
        teachers: list[nn.Module],
    ) -> None:
        self.around, self.model, self.adam = around, model, adam
        self.batch, self.loss, self.optimizer = batch, loss, optimizer
        self.reference, self.teachers = reference, teachers
        self.total = len(batch.tokens)
        self.computed = [s for s in range(len(batch)) if moves_weights(batch, loss, s)]
        moving = set(self.computed)
        self.own = [[s for s in update if s in moving] for update in batch.updates]
        self.rows = [around.pack(batch, own, vocabulary) for own in self.own]
        self.all_rows = around.pack(batch, self.computed, vocabulary)
        self.counted = batch.counted(self.computed)
        self.inputs = {n: self._counted(batch.streams[n]) for n in loss.reads if n in batch.streams}
        self.shares = shares(batch, loss.teachers)
        self.sums = dict.fromkeys(("loss", "norm", "entropy", "kl", "clipped", "tokens"), 0.0)
        self.cosines: list[float | None] = []
        self.preferences: list[dict] = []
        self.parent_logprobs: torch.Tensor | None = None
        self.told = self.computed
        self.max_gap: float | None = None
        """Mean |learner − sampler| log-prob above which nothing is updated, nats."""

    def _counted(self, values: torch.Tensor) -> torch.Tensor:
        # A weight of zero does not make up for an exponential that overflows: Inf · 0 is NaN.
        return torch.where(self.counted, values, torch.zeros_like(values))

    def _distribution(self, rows: Rows, logits: torch.Tensor) -> torch.Tensor:
        return distribution(logits, rows, self.batch, (self.loss.temperature, self.loss.top_k), self.around.unknown)

    def _logprobs(self, model: nn.Module, packed: list[Rows]) -> torch.Tensor:
        def of(rows: Rows, logits: torch.Tensor) -> torch.Tensor:
            return chosen(self._distribution(rows, logits), rows, self.batch)

        return self.around.per_token(model, packed, self.total, of)

    def begin(self) -> None:
        if "reference" in self.loss.reads and "reference" not in self.inputs:
            self.inputs["reference"] = self._logprobs(self.reference, self.all_rows)
            check_finite(self.inputs["reference"], "the reference")
        if self.loss.reads_old and len(self.batch.updates) > 1:
            self.inputs["old"] = self._logprobs(self.model, self.all_rows)
            check_finite(self.inputs["old"], "the weights that the step starts from")
            self.parent_logprobs = self.inputs["old"]
        else:
            # A single update's own forward pass runs under the parent's weights.
            self.told = self.own[0]

    def update(self, index: int) -> None:
        minibatch, rows = self.batch.updates[index], self.rows[index]
        before = f"the weights before update {self.adam.updates + 1}"
        coupled, weights = None, None
        if self.loss.kind == "coupled":
            coupled, weights = self._coupled(minibatch, self._logprobs(self.model, rows), before)
        else:
            weights = self.loss.weights(self.batch, minibatch)
        logprobs, sums = self._gradient(rows, weights, coupled is not None)
        if self.parent_logprobs is None:
            self.parent_logprobs = logprobs
        check_finite(logprobs, before)
        if index == 0:
            self._check_gap()
        loss = float(coupled.loss) if coupled else sums[0]
        if self.loss.kind == "distribution" and not math.isfinite(loss):
            raise Fault(
                "learner",
                "diverged",
                f"the divergence from the teachers is {loss}, and the log-probs of the student are numbers: the weights of "
                "a teacher are broken. Name another checkpoint for it.",
            )
        name = f"update {self.adam.updates + 1}"
        norm, cosine = self.adam.descend(self.optimizer, loss, name, self.around.ranks)
        self.cosines.append(cosine)
        clipped = float(coupled.clipped.sum()) if coupled and coupled.clipped is not None else sums[3]
        found = {"loss": loss, "norm": norm, "entropy": sums[1], "kl": sums[2], "clipped": clipped, "tokens": sums[4]}
        for key, number in found.items():
            self.sums[key] += number
        if coupled and coupled.preference:
            self.preferences.append(coupled.preference)

    def _sampled(self) -> list[int]:
        return self.told if self.loss.of_samples else []

    def _gap(self) -> dict:
        ages = self.batch.streams.get("staleness")
        if ages is not None:
            return gap(self.batch, self._sampled(), self.parent_logprobs, ages == 0)
        late = self.batch.sequences.get("late", torch.zeros(len(self.batch)))
        own = [s for s in self._sampled() if late[s] != 1]
        return gap(self.batch, own, self.parent_logprobs)

    def _effective(self) -> dict:
        found = effective_samples(self.batch, self.told, self.parent_logprobs) if "rollout" in self.loss.reads else None
        return {"effectiveSamples": found} if found else {}

    def _check_gap(self) -> None:
        mean = self._gap()["logprobGapMean"]
        if mean is None or self.max_gap is None or mean <= self.max_gap:
            return
        raise Fault(
            "learner",
            "logprob-gap",
            f"the log-probs of what was sampled are {mean:.3g} nats a token from the learner's, with a bound of "
            f"{self.max_gap}: nothing was trained on it",
        )

    def _coupled(self, minibatch: list[int], logprobs: torch.Tensor, before: str):
        """The loss of whole sequences, and its slope by each log-prob: Σ slope · log p has the same gradient (chain rule)."""
        check_finite(logprobs, before)
        now = logprobs.double().requires_grad_()
        given = {name: values.double() for name, values in self.inputs.items()} | {"logprobs": now}
        result = self.loss.compute(self.batch, minibatch, given)
        (slopes,) = torch.autograd.grad(result.loss, now)
        return result, slopes.float()

    def _gradient(self, packed: list[Rows], weights: torch.Tensor, linear: bool) -> tuple[torch.Tensor, list[float]]:
        """Leaves the gradient of an update; gives the log-probs [T], and the sums of loss, entropy, k3, clipped and tokens."""
        self.adam.zero()
        device = self.around.ranks.device
        logprobs = torch.zeros(self.total)
        sums = torch.zeros(5, dtype=torch.float64)
        for rows, logits, counts in self.around.run(self.model, packed):
            log_probs = self._distribution(rows, logits)
            own = chosen(log_probs, rows, self.batch)
            weight = weights[rows.sources].to(device)
            nothing = torch.zeros_like(weight)
            if linear:
                loss, kl, clipped = (own * weight).sum(), nothing, nothing
            elif self.loss.kind == "distribution":
                kl = self.loss.compute(log_probs, self._taught(rows))
                loss, clipped = (kl * weight).sum(), nothing
            else:
                given = {name: values[rows.sources].to(device) for name, values in self.inputs.items()}
                result = self.loss.compute(given | {"logprobs": own, "weights": weight})
                loss, kl, clipped = result.loss, result.kl, result.clipped
            entropy = entropy_of(log_probs if self.loss.entropy_bonus else log_probs.detach())
            if self.loss.entropy_bonus:
                loss = loss - self.loss.entropy_bonus * (entropy * weight).sum()
            (loss if counts else loss * 0).backward()
            if counts:
                logprobs[rows.sources] = own.detach().cpu()
                parts = [loss, entropy.sum(), kl.sum(), clipped.sum()]
                sums += torch.tensor([*(float(part.detach()) for part in parts), len(rows.sources)], dtype=torch.float64)
        return self.around.ranks.sum(logprobs), self.around.ranks.sum(sums).tolist()

    @torch.no_grad()
    def _taught(self, rows: Rows) -> torch.Tensor:
        """The teachers' log-probs [n, V], as one."""
        given = (self.around.compute["precision"], self.around.ranks.device)
        said = [self._distribution(rows, output(teacher, rows, *given)) for teacher in self.teachers]
        return self.loss.merged(said, [share[rows.sources].to(given[1]) for share in self.shares])

    def metrics(self) -> dict:
        loss, count, tokens = self.loss, len(self.batch.updates), max(1.0, self.sums["tokens"])
        preference = {name: mean_of([found[name] for found in self.preferences]) for name in ("margin", "accuracy")}
        measures_kl = loss.kind == "distribution" or (loss.kind == "token" and "reference" in loss.reads)
        return {
            "loss": self.sums["loss"] / count,
            "gradientNorm": self.sums["norm"] / count,
            "gradientMomentumCosine": mean_of(self.cosines),
            "entropy": self.sums["entropy"] / tokens,
            "kl": self.sums["kl"] / tokens if measures_kl else None,
            "clipFraction": self.sums["clipped"] / tokens if loss.clips else None,
            **({"preference": preference} if loss.prefers else {}),
            **self._gap(),
            **gap_by_staleness(self.batch, self._sampled(), self.parent_logprobs),
            **self._effective(),
            "tokens": sum(self.batch.length(s) for update in self.own for s in update),
        }


def mean_of(values: list[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


NO_POLICY = dict.fromkeys(
    ("loss", "gradientNorm", "gradientMomentumCosine", "entropy", "kl", "clipFraction", "logprobGapMax", "logprobGapMean")
)
"""Of a step that trains the critic alone."""


def gap(batch: Batch, sequences: list[int], logprobs: torch.Tensor | None, of: torch.Tensor | None = None) -> dict:
    """How far the learner's log-probs are from those that the sampler gave, nats, over the tokens that these sequences
    count: in all, by position behind the first that counts, and by how many positions there are from it to the last. `of`
    [T] leaves tokens out."""
    rollout = batch.streams.get("rollout")
    spans = [span for span in map(batch.sampled_span, sequences) if len(span) > 0]
    if rollout is None or logprobs is None or not spans:
        return {"logprobGapMax": None, "logprobGapMean": None}
    places = torch.cat([torch.arange(span.start, span.stop) for span in spans])
    positions = torch.cat([torch.arange(len(span)) for span in spans])
    lengths = torch.cat([torch.full((len(span),), len(span)) for span in spans])
    counted = batch.mask[places] == 1
    if of is not None:
        counted = counted & of[places]
    if not counted.any():
        return {"logprobGapMax": None, "logprobGapMean": None}
    apart = (logprobs[places] - rollout[places]).abs()[counted].double()
    return {
        "logprobGapMax": float(apart.max()),
        "logprobGapMean": float(apart.mean()),
        "logprobGapByPosition": binned(positions[counted], apart),
        "logprobGapByLength": binned(lengths[counted], apart),
    }


def gap_by_staleness(batch: Batch, sequences: list[int], logprobs: torch.Tensor | None) -> dict:
    """The mean of the same by how stale tokens are, those of late sequences included: nothing of those of which the batch
    does not say it."""
    ages, marks = batch.streams.get("staleness"), batch.sequences.get("staleness")
    if ages is None and marks is None:
        return {}
    if ages is None:
        lengths = torch.tensor([batch.length(s) for s in range(len(batch))])
        ages = marks.repeat_interleave(lengths)
    found = []
    for age in sorted({int(one) for one in ages.unique() if one >= 0}):
        of_age = gap(batch, sequences, logprobs, ages == age)
        if of_age["logprobGapMean"] is not None:
            tokens = sum(one["tokens"] for one in of_age["logprobGapByPosition"])
            found.append({"staleness": age, "tokens": tokens, "mean": of_age["logprobGapMean"]})
    return {"logprobGapByStaleness": found} if found else {}


def effective_samples(batch: Batch, sequences: list[int], logprobs: torch.Tensor) -> dict | None:
    """Kish's effective sample size (Σw)² / Σw² of the importance weights before any bound, as a part of their number: of the
    tokens that these sequences count, and of the sequences, whose weight is the product over their tokens."""
    masks = [mask for mask in (batch.counted([sequence]) for sequence in sequences) if mask.any()]
    if "rollout" not in batch.streams or not masks:
        return None
    log_weights = logprobs.double() - batch.streams["rollout"].double()
    of_tokens = torch.cat([log_weights[mask] for mask in masks])
    of_sequences = torch.stack([log_weights[mask].sum() for mask in masks])
    return {"tokens": effective_part(of_tokens), "sequences": effective_part(of_sequences)}


def effective_part(log_weights: torch.Tensor) -> float:
    # It does not depend on their scale, and the product over a long sequence may overflow.
    weights = torch.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights.square().sum() * len(weights)))


FIRST_BIN = 64
"""The first bin ends here, and each other one at twice where it begins."""


def binned(at: torch.Tensor, values: torch.Tensor) -> list[dict]:
    """Means by bins, of those that have a token."""
    bins = torch.where(at < FIRST_BIN, 0, 1 + (at.clamp(min=FIRST_BIN) // FIRST_BIN).log2().floor().long())
    return [
        {
            "from": 0 if number == 0 else FIRST_BIN * 2 ** (number - 1),
            "tokens": int((bins == number).sum()),
            "mean": float(values[bins == number].mean()),
        }
        for number in bins.unique().tolist()
    ]


class CriticUpdates:
    """The updates of the critic: a mean over tokens, on all sequences of each update."""

    def __init__(self, around: Surroundings, model: nn.Module, adam: Adam, batch: Batch, critic: dict, vocabulary: int) -> None:
        self.around, self.model, self.adam, self.batch = around, model, adam, batch
        self.clip, self.optimizer = critic["clip"], critic["optimizer"]
        self.rows = [around.pack(batch, update, vocabulary) for update in batch.updates]
        self.sums = dict.fromkeys(("loss", "norm", "clipped", "tokens"), 0.0)
        self.residuals: list[torch.Tensor] = []
        self.targets: list[torch.Tensor] = []

    def update(self, index: int) -> None:
        update, ranks = self.batch.updates[index], self.around.ranks
        streams = {n: self.batch.streams[n] for n in ("returns", *(("values",) if self.clip > 0 else ()))}
        weights = token_weights(self.batch, update, "token")
        self.adam.zero()
        values = torch.zeros(len(self.batch.tokens))
        sums = torch.zeros(3, dtype=torch.float64)
        for rows, predicted, counts in self.around.run(self.model, self.rows[index]):
            given = {n: s[rows.sources].to(ranks.device) for n, s in (streams | {"weights": weights}).items()}
            result = value(self.clip, given | {"predicted": predicted})
            (result.loss if counts else result.loss * 0).backward()
            if counts:
                values[rows.sources] = predicted.detach().cpu()
                sums += torch.tensor([float(result.loss.detach()), float(result.clipped.sum()), len(rows.sources)])
        values, (loss, clipped, tokens) = ranks.sum(values), ranks.sum(sums).tolist()
        name = f"update {self.adam.updates + 1} of the critic"
        check_finite(values, f"the critic before {name}", "value")
        norm, _ = self.adam.descend(self.optimizer, loss, name, ranks)
        for key, number in {"loss": loss, "norm": norm, "clipped": clipped, "tokens": tokens}.items():
            self.sums[key] += number
        counted = self.batch.counted(update)
        self.targets.append(streams["returns"][counted].double())
        self.residuals.append(self.targets[-1] - values[counted].double())

    def metrics(self) -> dict:
        count = len(self.batch.updates)
        spread = float(torch.cat(self.targets).var(unbiased=False))
        left = float(torch.cat(self.residuals).var(unbiased=False))
        return {
            "loss": self.sums["loss"] / count,
            "gradientNorm": self.sums["norm"] / count,
            "clipFraction": self.sums["clipped"] / max(1.0, self.sums["tokens"]) if self.clip > 0 else None,
            "explainedVariance": 1 - left / spread if spread > 0 else None,
        }


def train(around: Surroundings, batch: Batch, policy: PolicyUpdates | None, critic: CriticUpdates | None) -> dict:
    """All updates: each of the policy, then of the critic on the same sequences. Gives the metrics of the step."""
    started = time.perf_counter()
    if policy:
        policy.begin()
    for index in range(len(batch.updates)):
        around.advance(True)
        if policy:
            policy.update(index)
        if critic:
            critic.update(index)
    all_tokens = sum(batch.length(s) for update in batch.updates for s in update)
    return {
        **(policy.metrics() if policy else NO_POLICY | {"tokens": all_tokens}),
        **({"critic": critic.metrics()} if critic else {}),
        "updates": len(batch.updates),
        "seconds": time.perf_counter() - started,
    }
