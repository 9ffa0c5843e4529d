"""The weights of a Hugging Face folder, in one file or in shards."""

from pathlib import Path

import torch
from safetensors.torch import load_file


def weights_of(folder: str) -> dict[str, torch.Tensor]:
    """By name, as they are stored."""
    return {name: weight for file in sorted(Path(folder).glob("*.safetensors")) for name, weight in load_file(file).items()}
