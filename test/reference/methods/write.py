"""Writes credit.json and losses.json: the equations of the papers on small seeded inputs, beside what the libraries make
of the same inputs. Run again it writes the same bytes."""

import json
import pathlib

import torch

import credit_cases
from papers import critic, filters, group_baselines, turn_credit

HERE = pathlib.Path(__file__).parent

CREDIT = {
    "grpo": group_baselines.grpo,
    "dr-grpo": group_baselines.grpo,
    "rloo": group_baselines.rloo,
    "reinforce++": group_baselines.reinforce_plus_plus,
    "reinforce++-baseline": group_baselines.reinforce_plus_plus_baseline,
    "remax": group_baselines.remax,
    "ppo": critic.ppo,
    "bi-level-gae": critic.bi_level,
    "vapo": critic.vapo,
    "vtrace": critic.vtrace,
    "retrace": critic.retrace,
    "gigpo": turn_credit.gigpo,
    "process": turn_credit.process,
    "dynamic-sampling": filters.dynamic_sampling,
    "top-deviation": filters.top_deviation,
    "soft-overlong": filters.soft_overlong,
}


def credit():
    for case in credit_cases.cases():
        yield {**case, "expected": CREDIT[case["method"]](case["groups"], case["settings"])}


def plain(value):
    """Tensors as lists; floats to ten significant digits, and -0 as 0."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, float):
        return float(f"{value:.10g}") + 0.0
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def text(value, indent=""):
    """JSON in which a list of numbers or of short objects is one line."""
    inner = indent + "  "
    if isinstance(value, dict) and any(isinstance(item, (dict, list)) for item in value.values()):
        lines = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        if all(isinstance(item, dict) and not any(isinstance(i, (dict, list)) for i in item.values()) for item in value):
            return json.dumps(value, ensure_ascii=False)
        return "[\n" + ",\n".join(f"{inner}{text(item, inner)}" for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def write(name, cases):
    (HERE / name).write_text(text({"cases": [plain(case) for case in cases]}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("credit.json", credit())
