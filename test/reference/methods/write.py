"""Writes credit.json, losses.json and stale.json: the equations of the papers on small seeded inputs, beside what the
libraries make of the same inputs. Run again it writes the same bytes."""

import json
import pathlib

import torch

import credit_cases
import libraries
import loss_cases
import stale_cases
from papers import (
    critic,
    filters,
    group_baselines,
    policy_losses,
    preference_losses,
    stale,
    teacher_losses,
    tree_search,
    turn_credit,
)
from papers.samples import known

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
    "agentq": tree_search.agentq,
    "tree-search": tree_search.branches,
}

LOSSES = {
    "clipped-surrogate": policy_losses.clipped_surrogate,
    "gspo": policy_losses.gspo,
    "cispo": policy_losses.cispo,
    "reinforce": policy_losses.reinforce,
    "value": policy_losses.value,
    "distillation": teacher_losses.distillation,
    "supervised": teacher_losses.supervised,
    "dpo": preference_losses.dpo,
    "kto": preference_losses.kto,
}


def credit():
    for case in credit_cases.cases():
        expected = CREDIT[case["method"]](case["groups"], case["settings"])
        found = libraries.CREDIT[case["method"]](case) if case["method"] in libraries.CREDIT else []
        yield {**case, "expected": expected, "libraries": [compared(case, expected, *entry) for entry in found]}


def losses():
    for case in loss_cases.cases():
        name = differentiated(case)
        start = torch.tensor(case[name], dtype=torch.float64)
        expected = loss_and_gradient(case, start)
        assert_far_from_bounds(case, start, expected)
        found = [
            compared(case, expected, library, name, with_gradient(result, leaf))
            for function in libraries.LOSSES.get(case["method"], ())
            for leaf in [start.clone().requires_grad_()]
            for library, name, result in function({**case, differentiated(case): leaf}, case["settings"])
        ]
        yield {**case, "expected": expected, "libraries": found}


def stale_steps():
    for case in stale_cases.cases():
        start = stale_logits(case)
        expected, plain = stale_step(case, start)
        if case["first"]:
            # Where the policy has not moved, the gradient is the papers' own: that of Σ w ρ A log π.
            assert distance(expected["gradient"], plain) < 1e-12, case["name"]
        for seed in range(4):
            generator = torch.Generator().manual_seed(seed)
            noise = torch.randn(start.shape, dtype=torch.float64, generator=generator)
            moved, _ = stale_step(case, start + 1e-5 * noise)
            near = distance(moved["gradient"], expected["gradient"]) / expected["gradient"].abs().max()
            assert near < 1e-3, (case["name"], near)
        found = []
        for library, function, result in libraries.stale(case, leaf := start.clone().requires_grad_()):
            found.append(compared(case, expected, library, function, with_gradient(result, leaf)))
        yield {**case, "expected": expected, "libraries": found}


def stale_logits(case):
    rows = [row for group in case["groups"] for sample in known(group) for row in sample["logits"]]
    return torch.tensor(rows, dtype=torch.float64)


def stale_step(case, start):
    """Loss and gradient by the logits, and the gradient of Σ w ρ A log π."""
    leaf = start.clone().requires_grad_()
    result = stale.step(case, leaf)
    (plain,) = torch.autograd.grad(result["plain"], leaf, retain_graph=True)
    (gradient,) = torch.autograd.grad(result["loss"], leaf)
    return {"loss": result["loss"].detach(), "gradient": gradient.flatten()}, plain.flatten()


def with_gradient(result, leaf):
    result["loss"].backward()
    result["loss"] = result["loss"].detach()
    return {**result, "gradient": leaf.grad.flatten()}


def compared(case, expected, library, function, result):
    """How far a library is from the paper: absolutely, the gradient relative to its largest. Where it is farther than the
    TypeScript side may be, what it found stands beside it, with the reason."""
    differences = {name: distance(expected[name], result[name]) for name in result}
    if "gradient" in differences:
        differences["gradient"] /= expected["gradient"].abs().max().item()
    agrees = all(value <= (1e-4 if name == "gradient" else 1e-5) for name, value in differences.items())
    reason = libraries.DIFFERS.get((library, case["name"]))
    if agrees != (reason is None):
        raise AssertionError(f"{case['name']}, {library} {function}: {differences}, with the reason {reason!r}")
    entry = {"library": library, "function": function, "agrees": agrees, "differences": rounded(differences)}
    return entry if agrees else {**entry, "why": reason, "found": result}


def distance(expected, found):
    """The largest absolute difference of two nested lists, tensors or numbers; infinite where only one is null."""
    if expected is None or found is None:
        return 0.0 if expected is found else float("inf")
    if isinstance(expected, list):
        assert len(expected) == len(found)
        return max((distance(a, b) for a, b in zip(expected, found)), default=0.0)
    return (torch.as_tensor(expected) - torch.as_tensor(found)).abs().max().item()


def rounded(differences):
    """To one digit, and 0 for what is float64's own rounding."""
    return {name: float(f"{value:.0e}") if value > 1e-12 else 0.0 for name, value in differences.items()}


def differentiated(case):
    """What the gradient is by."""
    return "predicted" if case["method"] == "value" else "logits"


def loss_and_gradient(case, start):
    leaf = start.clone().requires_grad_()
    result = LOSSES[case["method"]]({**case, differentiated(case): leaf}, case["settings"])
    result["loss"].backward()
    return {**{key: value.detach() for key, value in result.items()}, "gradient": leaf.grad.flatten()}


def assert_far_from_bounds(case, start, expected):
    """In float32 no token may come to lie on the other side of a clip."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        moved = start + 1e-5 * torch.randn(start.shape, dtype=torch.float64, generator=generator)
        near = loss_and_gradient(case, moved)
        assert "clipped" not in expected or torch.equal(near["clipped"], expected["clipped"]), case["name"]
        difference = (near["gradient"] - expected["gradient"]).abs().max() / expected["gradient"].abs().max()
        assert difference < 1e-3, (case["name"], difference.item())


def plain(value):
    """Tensors as lists; floats to twelve significant digits, and -0 as 0."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, float):
        return float(f"{value:.12g}") + 0.0
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
    write("losses.json", losses())
    write("stale.json", stale_steps())
