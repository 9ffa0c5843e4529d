"""gradus.batch/2 (docs/batch.md): sequences end to end, the figures of their tokens, and which of them each update has."""

from dataclasses import dataclass, field

import torch

import tensors_file
from fault import Fault

FORMAT = "gradus.batch/2"
TOKEN_STREAMS = ("advantages", "rollout", "reference", "values", "returns", "staleness")
SEQUENCE_STREAMS = ("late", "pair", "label", "teacher", "episode", "staleness")


@dataclass
class Batch:
    """Arrays of tokens are [T], those of sequences [N]; sequence i is tokens[offsets[i] : offsets[i + 1]]."""

    tokens: torch.Tensor
    offsets: list[int]
    mask: torch.Tensor
    streams: dict[str, torch.Tensor] = field(default_factory=dict)
    sequences: dict[str, torch.Tensor] = field(default_factory=dict)
    kept: torch.Tensor | None = None
    kept_offsets: torch.Tensor | None = None
    updates: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def length(self, sequence: int) -> int:
        return self.offsets[sequence + 1] - self.offsets[sequence]

    def span(self, sequence: int) -> slice:
        return slice(self.offsets[sequence], self.offsets[sequence + 1])

    def counted(self, sequences: list[int]) -> torch.Tensor:
        """The mask [T] as booleans where one of these sequences is, False elsewhere."""
        own = torch.zeros(len(self.tokens), dtype=torch.bool)
        for sequence in sequences:
            own[self.span(sequence)] = self.mask[self.span(sequence)] == 1
        return own

    def sampled_span(self, sequence: int) -> range:
        """From the first token that counts to behind the last one, by index in the batch; empty where none does."""
        span = self.span(sequence)
        counted = (self.mask[span] == 1).nonzero().flatten().tolist()
        return range(span.start + counted[0], span.start + counted[-1] + 1) if counted else range(0)

    def counts(self, sequences: list[int]) -> list[int]:
        """Tokens that the mask counts, of each of them."""
        return [int(self.mask[self.span(sequence)].sum()) for sequence in sequences]

    def episodes(self, sequences: list[int]) -> list[int]:
        """The number of the episode that each of them is a branch of; one below 0 of its own for a sequence by itself."""
        marks = self.sequences.get("episode")
        given = [-1 if marks is None else int(marks[sequence]) for sequence in sequences]
        return [episode if episode >= 0 else -1 - sequence for episode, sequence in zip(given, sequences)]


def decode(data: bytes) -> Batch:
    """Raises Fault("store", "invalid-batch") for a file that is no batch, or says more than a batch may."""
    tensors, metadata = tensors_file.read(data, "the batch")
    if metadata.get("format") != FORMAT:
        raise invalid(f"its format is {metadata.get('format', 'not given')}, not {FORMAT}")
    floats = {f"token.{name}": name for name in TOKEN_STREAMS} | {f"sequence.{name}": name for name in SEQUENCE_STREAMS}
    whole = {"tokens", "offsets", "kept", "kept_offsets", "updates", "update_offsets"}
    for name, tensor in tensors.items():
        if name not in whole and name != "mask" and name not in floats:
            raise invalid(f"it has {name}, which nobody reads")
        if tensor.dtype != (torch.int32 if name in whole else torch.float32) or tensor.dim() != 1:
            raise invalid(f"{name} is {tensor.dtype} of {tensor.dim()} dimensions")
    lacking = {"tokens", "offsets", "mask", "updates", "update_offsets"} - set(tensors)
    if lacking or ("kept" in tensors) != ("kept_offsets" in tensors):
        raise invalid(f"it lacks {', '.join(sorted(lacking)) or 'one of kept and kept_offsets'}")
    offsets = tensors["update_offsets"].tolist()
    updates = tensors["updates"].tolist()
    if offsets[:1] != [0] or offsets[-1] != len(updates) or sorted(offsets) != offsets:
        raise invalid(f"its updates have the offsets {offsets[:8]}")
    return Batch(
        tokens=tensors["tokens"],
        offsets=tensors["offsets"].tolist(),
        mask=tensors["mask"],
        streams={name: tensors[stored] for stored, name in floats.items() if stored in tensors and "token." in stored},
        sequences={name: tensors[stored] for stored, name in floats.items() if stored in tensors and "sequence." in stored},
        kept=tensors.get("kept"),
        kept_offsets=tensors.get("kept_offsets"),
        updates=[updates[start:end] for start, end in zip(offsets, offsets[1:])],
    )


def invalid(what: str) -> Fault:
    return Fault("store", "invalid-batch", f"not a batch of {FORMAT}: {what}. Make the batch again")
