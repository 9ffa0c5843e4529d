"""Adam (Kingma & Ba 2015, algorithm 1 in the form at the end of its section 2): ε is added to √v before the bias is
corrected, which is not what torch.optim.Adam does."""

import math

import torch

from fault import Fault
from ranks import Ranks, local


def rate_at(optimizer: dict, before: int) -> float:
    """The learning rate of the update after `before` others: it warms up linearly."""
    warm = optimizer["warmupUpdates"]
    return optimizer["learningRate"] * (min(1.0, (before + 1) / warm) if warm > 0 else 1.0)


def square(values: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(values, dtype=torch.float64) ** 2


class Adam:
    """Weights with their moments, changed in place."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter], first: dict, second: dict, updates: int) -> None:
        self.parameters = parameters
        self.first = first or {name: torch.zeros_like(p.detach()) for name, p in parameters.items()}
        self.second = second or {name: torch.zeros_like(p.detach()) for name, p in parameters.items()}
        self.updates = updates
        self.begun = bool(first)
        """Whether the moments say anything: of weights that were never updated none are stored."""

    def zero(self) -> None:
        for parameter in self.parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def descend(self, optimizer: dict, loss: float, name: str, ranks: Ranks) -> tuple[float, float | None]:
        """One update by the gradients that lie there, clipped to `maxGradientNorm`; their norm before, and their cosine with
        the first moments before, None where one of the two is zero. A parameter without a gradient has one of zero, and its
        moments decay. Raises Fault("learner", "diverged"), with the weights as they were."""
        grads = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in self.parameters.items()}
        pairs = [(local(g), local(self.first[n])) for n, g in grads.items()]
        parts = [torch.stack([square(g), square(m), (g * m).sum(dtype=torch.float64)]) for g, m in pairs]
        total = torch.stack(parts).sum(0)
        squares, moments, product = (ranks.sum(total) if ranks.sharded else total).tolist()
        norm = math.sqrt(squares)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise Fault(
                "learner",
                "diverged",
                f"{name}: loss {loss}, gradient norm {norm}. Lower the learning rate, clip the gradient norm, "
                "or look at the advantages of this batch.",
            )
        largest = optimizer["maxGradientNorm"]
        scale = min(1.0, largest / norm) if largest > 0 and norm > 0 else 1.0
        beta1, beta2 = optimizer["beta1"], optimizer["beta2"]
        update = self.updates + 1
        step = rate_at(optimizer, self.updates) * math.sqrt(1 - beta2**update) / (1 - beta1**update)
        for key, parameter in self.parameters.items():
            g = local(grads[key]) * scale
            m, v = local(self.first[key]), local(self.second[key])
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            local(parameter).addcdiv_(m, v.sqrt().add_(optimizer["epsilon"]), value=-step)
        self.updates = update
        self.begun = True
        length = norm * math.sqrt(moments)
        return norm, max(-1.0, min(1.0, product / length)) if length > 0 else None
