"""The processes that make a step together, each with a part of the weights (FSDP2) and of the micro-batches."""

import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, distribute_tensor

from fault import Fault

LONG = timedelta(days=30)
"""Between two steps other ranks wait for rank 0, for as long as a rollout takes. A rank that died ends the wait at once."""


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What of a tensor this rank has."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of it, on every rank; a collective where it is sharded."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(tensor: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """A tensor that every rank has, in the parts that the parameter has."""
    moved = tensor.to(parameter.device, copy=True)
    return distribute_tensor(moved, parameter.device_mesh, parameter.placements) if isinstance(parameter, DTensor) else moved


class Stopped(Exception):
    """The step was cancelled, and nothing of it is written."""


def attempt(act: Callable) -> tuple:
    try:
        return act(), None
    except Fault as fault:
        return None, fault


class Ranks:
    def __init__(self, device: torch.device, rank: int = 0, count: int = 1) -> None:
        self.device = device
        self.rank = rank
        self.count = count
        self.sharded = count > 1

    @staticmethod
    def join() -> "Ranks":
        """As torchrun has started this process, or alone."""
        cuda = torch.cuda.is_available()
        rank, count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        index = int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device("cuda", index) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(device)
        if count > 1:
            dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=LONG)
        return Ranks(device, rank, count)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Over all ranks, in place."""
        if self.sharded:
            dist.all_reduce(tensor)
        return tensor

    def told(self, value):
        """What rank 0 says, on every rank."""
        if not self.sharded:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def first(self, act: Callable):
        """What rank 0 alone does; its fault is everybody's."""
        if not self.sharded:
            return act()
        value, fault = attempt(act) if self.rank == 0 else (None, None)
        value, fault = self.told((value, fault))
        if fault:
            raise fault
        return value

    def agree(self, act: Callable):
        """What every rank does for itself, such as reading; the fault of one is everybody's, so that none waits for it."""
        if not self.sharded:
            return act()
        value, fault = attempt(act)
        faults: list = [None] * self.count
        dist.all_gather_object(faults, fault)
        for fault in faults:
            if fault:
                raise fault
        return value

    @staticmethod
    def common(error: Exception) -> bool:
        """Whether every rank has met this, so that all are where they were before the step."""
        return isinstance(error, (Fault, Stopped))

    def own(self, items: list) -> list[tuple[object, bool]]:
        """This rank's part of the items, each with whether it counts: every rank has as many, because each makes the same
        collectives, and one that lacks an item computes the first for nothing."""
        if not self.sharded:
            return [(item, True) for item in items]
        rounds = -(-len(items) // self.count)
        places = [round * self.count + self.rank for round in range(rounds)]
        return [(items[at], True) if at < len(items) else (items[0], False) for at in places]

    def shard(self, module: torch.nn.Module) -> torch.nn.Module:
        """Every block of layers, and what is around them, in as many parts as there are ranks; gradients add up."""
        if not self.sharded:
            return module
        from torch.distributed.fsdp import fully_shard

        mesh = dist.init_device_mesh(self.device.type, (self.count,))
        blocks = [m for m in module.modules() if isinstance(m, torch.nn.ModuleList)]
        for block in blocks:
            for layer in block:
                fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
        for part in module.modules():
            if hasattr(part, "set_gradient_divide_factor"):
                part.set_gradient_divide_factor(1.0)
                # Gloo knows no other sum than the plain one.
                part.set_force_sum_reduction_for_comms(True)
        return module
