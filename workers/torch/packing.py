"""Sequences of an update as micro-batches: several share a row, kept apart by their positions, so that little is padding."""

from dataclasses import dataclass

import torch

from batch import Batch


@dataclass
class Rows:
    """`tokens` and `positions` are [rows, length]; a position that starts again at 0 begins another sequence, and what fills
    a row up is one, too. `at` [n] are the flat places whose next token counts, and `sources` [n] where it is in the batch."""

    tokens: torch.Tensor
    positions: torch.Tensor
    at: torch.Tensor
    sources: torch.Tensor


def micro_batches(batch: Batch, sequences: list[int], positions: int, one_row: bool) -> list[Rows]:
    """First-fit decreasing into rows that are as long as the longest sequence, of some `positions` a micro-batch; a pure
    function of the lengths. `one_row`: end to end in a single row, for attention that knows sequences of any length."""
    counts = batch.counts(sequences)
    # The last token of a sequence predicts nothing; a sequence of which nothing counts need not be computed.
    own = [s for s, count in zip(sequences, counts) if count > 0]
    own.sort(key=lambda s: -batch.length(s))
    if not own:
        return []
    length = batch.length(own[0]) - 1
    contents: list[list[int]] = []
    room: list[int] = []
    for sequence in own:
        size = batch.length(sequence) - 1
        row = next((i for i, left in enumerate(room) if left >= size), len(room))
        if row == len(room):
            contents.append([])
            room.append(length)
        contents[row].append(sequence)
        room[row] -= size
    most = max(1, positions // length)
    parts = [contents[i : i + most] for i in range(0, len(contents), most)]
    if one_row:
        return [fill(batch, [[s for row in part for s in row]]) for part in parts]
    return [fill(batch, part) for part in parts]


def fill(batch: Batch, contents: list[list[int]]) -> Rows:
    length = max(sum(batch.length(s) - 1 for s in row) for row in contents)
    tokens = torch.zeros(len(contents), length, dtype=torch.long)
    positions = torch.zeros(len(contents), length, dtype=torch.long)
    sources = torch.full((len(contents), length), -1, dtype=torch.long)
    for i, row in enumerate(contents):
        at = 0
        for sequence in row:
            start, end = batch.offsets[sequence], batch.offsets[sequence + 1]
            size = end - start - 1
            tokens[i, at : at + size] = batch.tokens[start : end - 1]
            positions[i, at : at + size] = torch.arange(size)
            sources[i, at : at + size] = torch.arange(start + 1, end)
            at += size
        positions[i, at:] = torch.arange(length - at)
    flat = sources.flatten()
    counts = (flat >= 0) & (batch.mask[flat.clamp(min=0)] == 1)
    at = counts.nonzero()[:, 0]
    return Rows(tokens, positions, at, flat[at])
