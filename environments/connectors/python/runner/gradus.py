"""What a module that Gradus calls may import of it: `from gradus import Refusal`."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Made = TypeVar("Made")


class Refusal(Exception):
    """The policy's own mistake: it reads the message as the observation, and can learn from it."""


def split_of(value: Any) -> str:
    """The split that a thing belongs to by its content, whoever makes it: one in ten is held out, one in ten for tests."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()
    return {0: "heldout", 1: "test"}.get(int.from_bytes(digest[:4], "big") % 10, "train")


def find(split: str, index: int, make: Callable[[int], Made], key: Callable[[Made], Any], tries: int = 1000) -> Made:
    """What `make` gives of the first of the seeds that are `index`'s own whose key belongs to the split."""
    for seed in range(index * tries, (index + 1) * tries):
        made = make(seed)
        if split_of(key(made)) == split:
            return made
    raise LookupError(f"none of {tries} seeds gives a task of the split {split}: there are too few different ones")


# Of five: three for training, one held out, one for tests.
OF_FIVE = {"train": (0, 1, 2), "heldout": (3,), "test": (4,)}


def nth(split: str, index: int, things: Sequence[Made]) -> Made:
    """Of a finite list, all of which are different: three of five are for training, one is held out, one for tests."""
    fives, rest = divmod(index, len(OF_FIVE[split]))
    return things[5 * fives + OF_FIVE[split][rest]]


def different(count: int, make: Callable[[int], Made], key: Callable[[Made], Any]) -> list[Made]:
    """The first things of different keys that `make` gives of the seeds 0, 1, 2, …: for `nth`, where there are few of them."""
    found: dict[str, Made] = {}
    for seed in range(100 * count):
        if len(found) == count:
            return list(found.values())
        made = make(seed)
        found.setdefault(repr(key(made)), made)
    raise LookupError(f"{100 * count} seeds give {len(found)} different tasks, and not {count}")
