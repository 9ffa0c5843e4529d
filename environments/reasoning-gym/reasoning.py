"""Tasks of reasoning-gym, and what it says of answers."""

import functools
import re

import reasoning_gym  # noqa: F401  (registers its data sets)
from gradus import find
from reasoning_gym.factory import CURRICULA, DATASETS, create_curriculum

SEED = 20261122
# These evaluate what they are given as Python. A policy wrote it: only what cannot do anything is let through.
MATRICES = {"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"}
SUMS = {"countdown", "puzzle24"}
FORMULAS = {"intermediate_integration", "polynomial_multiplication", "simple_integration"}
MATRIX = re.compile(r"[\s\[\],'\"0-9A-Za-z_.-]{0,20000}")
SUM = re.compile(r"(?!.*\*\s*\*)[-+*/() 0-9.]{0,200}")
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


def task(name, split, level, index):
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
    return {"score": float(made.score_answer(answer=answer, entry=made[info["item"]]))}


def harmless(name, answer):
    if name in MATRICES:
        return MATRIX.fullmatch(answer) is not None
    if name in SUMS:
        return SUM.fullmatch(answer) is not None
    if name in FORMULAS:
        if FORMULA.fullmatch(answer) is None or re.search(r"\.\s*[A-Za-z]|[A-Za-z]\s*\.", answer):
            return False
        names = re.findall(r"[A-Za-z]+", answer)
        return len(POWER.findall(answer)) == answer.count("**") and all(len(n) == 1 or n in NAMES for n in names)
    return True
