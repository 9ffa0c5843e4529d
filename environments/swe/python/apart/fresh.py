"""Asks the code what the tests have asked it, with other arguments, and asks the sound code the same.

What a patch has by heart from the tests that it could read does not answer these. Only calls of functions of modules
count whose arguments and results are plain values, and only where the sound code has an answer, and the same one twice.
"""

import itertools
import os
import random

MOST_ASKED = 40
LONGEST_RESULT = 500
OTHERS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
PLAIN_TYPES = (bool, int, float, str, bytes, type(None))
CONTAINER_TYPES = (list, tuple, dict, set, frozenset)


class Asked:
    """The calls that some tests have made of functions of modules: (module, name, arguments, named arguments)."""

    def __init__(self, tests: list) -> None:
        self._tests = tests
        self.calls: list = []

    def hear(self, place: tuple, arguments: tuple, named: dict) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if test in self._tests and is_plain(arguments) and is_plain(named):
            self.calls.append((*place, arguments, named))


def difference(asked: Asked, code, sound, draw: str) -> str | None:
    """The first call of which the two say different things, in words."""
    rng = random.Random(draw)
    calls = rng.sample(asked.calls, min(MOST_ASKED, len(asked.calls)))
    for module, name, arguments, named in calls:
        other = [changed(one, rng) for one in arguments], {key: changed(one, rng) for key, one in named.items()}
        wanted, again = answer(sound, module, name, *other), answer(sound, module, name, *other)
        if wanted is not None and wanted == again and answer(code, module, name, *other) != wanted:
            return f"{module}.{name}{tuple(other[0])!r}"[:200]
    return None


def answer(peer, module: str, name: str, arguments: list, named: dict):
    """A one-element tuple with the plain value that a call gives; None where there is none."""
    try:
        peer.ask("import", module)
        found = peer.ask("call", peer.ask("of_module", module, name), tuple(arguments), named)
        if not is_plain(found) and hasattr(type(found), "__next__"):
            found = list(itertools.islice(found, LONGEST_RESULT))
    except Exception:
        return None
    return (found,) if is_plain(found) and found == found else None


def is_plain(value) -> bool:
    if type(value) in PLAIN_TYPES:
        return True
    if type(value) is dict:
        return all(is_plain(one) for pair in value.items() for one in pair)
    return type(value) in CONTAINER_TYPES and all(is_plain(one) for one in value)


def changed(value, rng: random.Random):
    """A value of the same shape: digits for digits, letters for letters, numbers a little larger."""
    kind = type(value)
    if kind is int or kind is float:
        return value + rng.choice([0, 1, 2])
    if kind is str:
        return "".join(_other(letter, rng) if rng.random() < 0.5 else letter for letter in value)
    if kind is dict:
        return {key: changed(one, rng) for key, one in value.items()}
    if kind in (list, tuple):
        return kind([changed(one, rng) for one in value])
    return value


def _other(letter: str, rng: random.Random) -> str:
    return next((rng.choice(kind) for kind in OTHERS if letter in kind), letter)
