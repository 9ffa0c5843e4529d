"""Tasks of reasoning-gym, and what it says of answers."""

import functools
import math
import re

import reasoning_gym  # noqa: F401  (registers its data sets)
from gradus import different, find, split_of
from reasoning_gym.factory import CURRICULA, DATASETS, create_curriculum

SEED = 20261122
# These evaluate what they are given as Python. A policy wrote it: only what cannot do anything is let through.
MATRICES = {"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"}
SUMS = {"countdown", "puzzle24"}
NUMBERS = {"complex_arithmetic"}
FORMULAS = {"intermediate_integration", "polynomial_multiplication", "simple_integration"}
MATRIX = re.compile(r"[\s\[\],'\"0-9A-Za-z_.-]{0,20000}")
SUM = re.compile(r"(?!.*\*\s*\*)[-+*/() 0-9.]{0,200}")
# No letters for `nan`, which is nothing's distance from anything: it would be right everywhere.
NUMBER = re.compile(r"[-+*() 0-9.eEiIjJ]{0,200}")
FORMULA = re.compile(r"[-+*/() 0-9.,A-Za-z]{0,400}")
NAMES = {"sin", "cos", "tan", "exp", "log", "ln", "sqrt", "pi"}
# A power is a small number, or a fraction of two: no tower of them.
POWER = re.compile(r"\*\*\s*(?:\d{1,2}|\(-?\d{1,2}(?:/\d{1,2})?\))(?![\d*])")


@functools.lru_cache(maxsize=64)
def dataset(name, level):
    size = 10**9
    if name not in CURRICULA:
        return DATASETS[name][0](DATASETS[name][1](seed=SEED, size=size))
    curriculum = create_curriculum(name)
    for attribute, definition in curriculum.attributes.items():
        curriculum.set_attr_level(attribute, min(level, len(definition.levels)) - 1)
    return DATASETS[name][0](curriculum.generate_configuration({"seed": SEED, "size": size}))


@functools.cache
def questions(name, level, split, count):
    """Those of a split, with their numbers, of so many different ones. A question is of the same split at every level."""
    made = dataset(name, level)
    known = different(count, lambda item: (item, made[item]), lambda found: found[1]["question"])
    return [(item, entry) for item, entry in known if split_of(entry["question"]) == split]


def task(name, few, split, level, index):
    if level == 1 and few is not None:
        item, entry = questions(name, level, split, few)[index]
    else:
        made = dataset(name, level)
        item, entry = find(split, index, lambda item: (item, made[item]), lambda found: found[1]["question"])
    answer = entry["answer"] if isinstance(entry["answer"], str) else None
    return {"prompt": entry["question"], "answer": answer, "info": {"name": name, "level": level, "item": item}}


def verify(task, answer, episode):
    if answer is None:
        return {"score": 0.0, "evidence": "no answer"}
    info = task["info"]
    if not harmless(info["name"], answer):
        return {"score": 0.0, "evidence": "the answer is no value of the kind that is asked for"}
    made = dataset(info["name"], info["level"])
    entry = made[info["item"]]
    try:
        score = float(made.score_answer(answer=answer, entry=entry))
    except Exception as error:
        # Whoever writes what the package cannot read must not get out of being judged; what it cannot judge at all, must.
        made.score_answer(answer=entry["answer"], entry=entry)
        return {"score": 0.0, "evidence": f"the answer cannot be read: {type(error).__name__}: {error}"[:500]}
    return {"score": score if math.isfinite(score) else 0.0}


def harmless(name, answer):
    if name in MATRICES:
        return MATRIX.fullmatch(answer) is not None
    if name in SUMS:
        return SUM.fullmatch(answer) is not None
    if name in NUMBERS:
        return NUMBER.fullmatch(answer) is not None
    if name in FORMULAS:
        if FORMULA.fullmatch(answer) is None or re.search(r"\.\s*[A-Za-z]|[A-Za-z]\s*\.", answer):
            return False
        names = re.findall(r"[A-Za-z]+", answer)
        return len(POWER.findall(answer)) == answer.count("**") and all(len(n) == 1 or n in NAMES for n in names)
    return True
