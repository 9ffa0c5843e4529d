"""Of a critic: PPO's squared error (Schulman et al. 2017, eq. 9) with the clip of its first implementation (Dhariwal et al.
2017; Engstrom et al. 2020, section 3).

    L = Σ w · ½ max((V − R)², (clip(V, values − ε, values + ε) − R)²);  without the second where ε is 0
"""

import torch

from .loss import Inputs, TokenResult


def value(clip: float, given: Inputs) -> TokenResult:
    """`predicted`, `weights`, `returns`, and with a clip `values`, [n] each."""
    predicted, returns = given["predicted"], given["returns"]
    squares = (predicted - returns).square()
    nothing = torch.zeros_like(squares)
    if clip == 0:
        return TokenResult((squares * given["weights"]).sum() / 2, nothing, nothing)
    near = torch.maximum(torch.minimum(predicted, given["values"] + clip), given["values"] - clip)
    held = (near - returns).square()
    loss = (torch.maximum(squares, held) * given["weights"]).sum() / 2
    return TokenResult(loss, nothing, (held > squares).float())
