"""Every loss that a learner step may minimize, one file each."""

from fault import Fault

from .cispo import cispo
from .clipped import clipped
from .distill import distill
from .dpo import dpo
from .gspo import gspo
from .kto import kto
from .loss import Loss
from .own import own_loss
from .reinforce import reinforce
from .supervised import supervised

LOSSES = {
    "supervised": supervised,
    "clipped": clipped,
    "gspo": gspo,
    "cispo": cispo,
    "reinforce": reinforce,
    "dpo": dpo,
    "kto": kto,
    "distill": distill,
}


def loss_of(objective: dict) -> Loss:
    """Raises Fault("learner", "settings") for a loss that is not here."""
    if objective["kind"] == "own":
        return own_loss(objective)
    if objective["kind"] not in LOSSES:
        raise Fault("learner", "settings", f"this learner has no loss {objective['kind']}: it has {', '.join(LOSSES)}")
    return LOSSES[objective["kind"]](objective)
