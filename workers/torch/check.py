"""What is asked of a batch and of settings before anything is computed, as engine/learner/step/check-arguments.ts has it."""

import torch

from batch import Batch
from fault import Fault
from losses import Loss


def wrong(type: str, message: str) -> Fault:
    return Fault("learner", type, message)


def check_sequences(batch: Batch, positions: int, vocabulary: int, unknown: torch.Tensor | None, top_k: int) -> None:
    """Raises Fault("learner", "batch") where sequences are malformed or do not fit the model."""
    total = len(batch.tokens)
    if len(batch.offsets) < 2 or batch.offsets[0] != 0 or batch.offsets[-1] != total:
        raise wrong("batch", f"offsets must start with 0 and end with the number of tokens, {total}")
    check_numbers({"mask": batch.mask}, total, "tokens")
    for sequence in range(len(batch)):
        length, start = batch.length(sequence), batch.offsets[sequence]
        if length < 1:
            raise wrong("batch", f"sequence {sequence} has {length} tokens")
        if length > positions:
            raise wrong(
                "batch",
                f"sequence {sequence} has {length} tokens and the model takes {positions}: shorten the episodes or "
                "raise maxPositions",
            )
        if batch.mask[start] != 0:
            raise wrong("batch", f"mask[{start}] counts the first token of sequence {sequence}, which nothing predicts")
    outside = (batch.tokens < 0) | (batch.tokens >= vocabulary)
    if outside.any():
        at = int(outside.nonzero()[0])
        raise wrong(
            "batch",
            f"tokens[{at}] is {int(batch.tokens[at])} and the model knows 0 to {vocabulary - 1}: use the tokenizer of this model",
        )
    if unknown is not None and unknown[batch.tokens.long()].any():
        raise wrong("batch", "there are tokens that the tokenizer of this model lacks: learn from what was sampled with it")
    if not ((batch.mask == 0) | (batch.mask == 1)).all():
        raise wrong("batch", "the mask must be 0 or 1")
    if not (batch.mask == 1).any():
        raise wrong("batch", "no token of the batch is masked in: there is nothing to learn")
    if batch.kept is not None:
        check_kept(batch, vocabulary, top_k)


def check_kept(batch: Batch, vocabulary: int, top_k: int) -> None:
    """A token that it was not sampled among, or a set that does not fit, would be learnt from as something else."""
    assert batch.kept is not None and batch.kept_offsets is not None
    offsets, ids, tokens = batch.kept_offsets.tolist(), batch.kept.tolist(), batch.tokens.tolist()
    if len(offsets) != len(tokens) + 1 or offsets[0] != 0 or offsets[-1] != len(ids):
        raise wrong("batch", f"kept has {len(offsets) - 1} sets for {len(tokens)} tokens")
    for at, token in enumerate(tokens):
        kept = ids[offsets[at] : offsets[at + 1]]
        if not kept:
            continue
        ascending = all(a < b for a, b in zip(kept, kept[1:])) and kept[0] >= 0 and kept[-1] < vocabulary
        # What a cut left does not matter to who reads the whole distribution, or none.
        if not ascending or (0 < top_k < len(kept)) or token not in kept:
            raise wrong(
                "batch",
                f"tokens[{at}] is {token}, sampled among {kept[:8]}: give ascending ids of the model, "
                f"{f'{top_k} at most, ' if top_k > 0 else ''}with the token among them",
            )


def check_batch(batch: Batch, loss: Loss | None, critic: dict | None) -> None:
    """Raises Fault("learner", "batch") where a batch lacks what a step needs."""
    needed = list(loss.needs) if loss else []
    if critic:
        needed += ["returns", *(["values"] if critic["clip"] > 0 else [])]
    lacking = [name for name in needed if name not in batch.streams]
    lacking += [name for name in (loss.needs_of_sequences if loss else ()) if name not in batch.sequences]
    if lacking:
        raise wrong("batch", f"it lacks the stream {lacking[0]}, which this step reads")
    check_numbers(batch.streams, len(batch.tokens), "tokens")
    check_numbers(batch.sequences, len(batch), "sequences")
    if not batch.updates:
        raise wrong("batch", "it has no updates: there is nothing to do")
    for number, update in enumerate(batch.updates, 1):
        known = all(0 <= sequence < len(batch) for sequence in update)
        if not update or not known or len(set(update)) < len(update):
            raise wrong(
                "batch",
                f"update {number} has the sequences {update[:8]}: give one or more from 0 to {len(batch) - 1}, each once",
            )
    problem = loss.problem_of(batch) if loss else None
    if problem:
        raise wrong("batch", problem)


def check_numbers(arrays: dict[str, torch.Tensor], count: int, what: str) -> None:
    for name, values in arrays.items():
        if len(values) != count:
            raise wrong("batch", f"{name} has {len(values)} entries for {count} {what}")
        if not torch.isfinite(values).all():
            raise wrong("batch", f"every entry of {name} must be a finite number")


def check_settings(objective: dict | None, critic: dict | None, compute: dict, loss: Loss | None) -> None:
    """Raises Fault("learner", "settings" or "precision")."""
    if not objective and not critic:
        raise wrong("settings", "there is neither an objective nor a critic: nothing is to be learnt")
    if critic and critic.get("loss"):
        raise wrong("settings", f"critic.loss is {critic['loss']}: this learner has no reward models")
    if critic and not critic["clip"] >= 0:
        raise wrong("settings", f"critic.clip is {critic['clip']}: give 0 or more units of reward")
    if compute["precision"] not in ("float32", "bfloat16"):
        raise wrong("precision", f"this learner has no {compute['precision']}: it has float32 and bfloat16")
    if loss:
        check_temperature(loss.temperature)


def check_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise wrong("settings", f"temperature is {temperature}: log-probs need one above 0")


def check_finite(values: torch.Tensor, whose: str, what: str = "log-prob") -> None:
    """Raises Fault("learner", "diverged"): values [T] of tokens are 0 where nothing counts."""
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad) == 0:
        return
    at = int(bad[0])
    raise wrong(
        "diverged",
        f"the {what} of token {at} of the batch is {float(values[at])} under {whose}: these weights are broken, or hold "
        "for impossible what was sampled. Go back to an earlier checkpoint, or lower the learning rate.",
    )
