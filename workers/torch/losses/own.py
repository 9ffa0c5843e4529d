"""Losses that a project brings: each file that GRADUS_TORCH_LOSSES names has functions under `@own`.

    from losses.own import own
    from losses.loss import Loss, TokenResult

    @own("softer-reinforce")
    def softer_reinforce(objective: dict) -> Loss: ...

`objective["options"]` is what the plan of the project's method says. docs/extend.md has an example.
"""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from fault import Fault

from .loss import Loss

OWN: dict[str, Callable[[dict], Loss]] = {}


def own(name: str) -> Callable[[Callable[[dict], Loss]], Callable[[dict], Loss]]:
    """Gives a loss its name. Raises Fault("learner", "settings") where another one has it."""

    def named(make: Callable[[dict], Loss]) -> Callable[[dict], Loss]:
        if name in OWN:
            raise Fault("learner", "settings", f"two losses of the project are called {name!r}: rename one")
        OWN[name] = make
        return make

    return named


def load_own() -> None:
    """Imports the files of GRADUS_TORCH_LOSSES, names separated by commas. Raises Fault("learner", "settings")."""
    for name in filter(None, (part.strip() for part in os.environ.get("GRADUS_TORCH_LOSSES", "").split(","))):
        file = Path(name).resolve()
        if not file.is_file():
            raise Fault("learner", "settings", f"GRADUS_TORCH_LOSSES names {name}, which is no file")
        spec = importlib.util.spec_from_file_location(f"gradus_losses_{len(OWN)}_{file.stem}", file)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as error:
            if isinstance(error, Fault):
                raise
            raise Fault("learner", "settings", f"{name}, of GRADUS_TORCH_LOSSES, cannot be imported: {error}") from error


def own_loss(objective: dict) -> Loss:
    """Raises Fault("learner", "settings") for one that no file has."""
    name = objective["name"]
    if name not in OWN:
        known = f"it has {', '.join(sorted(OWN))}" if OWN else "it has none of a project"
        raise Fault(
            "learner",
            "settings",
            f"this learner has no loss {name!r}, {known}: name the file that brings it in GRADUS_TORCH_LOSSES",
        )
    loss = OWN[name](objective)
    if not isinstance(loss, Loss):
        raise Fault("learner", "settings", f"the loss {name!r} of the project is no Loss")
    return loss
