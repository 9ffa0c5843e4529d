"""What an update minimizes, and all that the step must know of it. As engine/learner/losses/loss.ts has it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from batch import Batch

Tensor = torch.Tensor
Inputs = dict[str, Tensor]
"""By name: `logprobs` of now, `weights`, and what the loss `reads`; 0 where the mask is."""


@dataclass(frozen=True)
class TokenResult:
    """`loss` is a scalar; of each token `kl` is k3 to the reference and `clipped` 1 where a clip bound."""

    loss: Tensor
    kl: Tensor
    clipped: Tensor


@dataclass(frozen=True)
class CoupledResult:
    loss: Tensor
    clipped: Tensor | None = None
    preference: dict | None = None


@dataclass(frozen=True)
class Loss:
    kind: str
    """`token`: a sum over tokens. `coupled`: of whole sequences, by their log-probs in float64. `distribution`: over all ids."""
    temperature: float
    top_k: int = 0
    of_samples: bool = True
    """Whether a policy has sampled the tokens that count; nobody has sampled a demonstration."""
    clips: bool = False
    prefers: bool = False
    moves_all: bool = False
    """Whether a sequence moves the weights whose every advantage is 0."""
    needs: tuple[str, ...] = ()
    needs_of_sequences: tuple[str, ...] = ()
    reads_old: bool = False
    """Log-probs under the weights that the step started from; where a step has one update they are its own, as constants."""
    reads: tuple[str, ...] = ()
    entropy_bonus: float = 0.0
    problem_of: Callable[[Batch], str | None] = lambda batch: None
    weights: Callable[[Batch, list[int]], Tensor] = field(default=lambda batch, sequences: torch.zeros(len(batch.tokens)))
    compute: Callable[..., TokenResult | CoupledResult | Tensor] | None = None
    """Token: of Inputs. Coupled: of batch, sequences, Inputs [T]. Distribution: of log q and log p [n, V]."""
    teachers: tuple[float, ...] = ()
    merged: Callable[[list[Tensor], list[Tensor]], Tensor] | None = None
    """Distribution: what is followed [n, V] of teachers' log-probs [n, V] and shares [n]."""
