"""Imports modules of verl and TorchRL without what their packages import first (Ray, TensorDict, OmegaConf, a GPU): the
packages on the way to a module are made without running their __init__, and a few names that the functions used here only
mention in their types are empty classes."""

import importlib
import importlib.util
import pathlib
import sys
import types


def bare_package(name):
    """A package with its folder, whose __init__ has not run."""
    package = types.ModuleType(name)
    root = importlib.util.find_spec(name.split(".")[0]).submodule_search_locations[0] if "." not in name else None
    package.__path__ = [root or str(pathlib.Path(sys.modules[name.rpartition(".")[0]].__path__[0], name.rpartition(".")[2]))]
    placed(package)
    return package


def named(name, **members):
    """A module that has these members only."""
    module = types.ModuleType(name)
    vars(module).update(members)
    placed(module)


def placed(module):
    sys.modules[module.__name__] = module
    parent, _, child = module.__name__.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)


class ActorConfig:
    """verl.workers.config.ActorConfig as far as its losses read it: the bounds, and what aggregates over a batch."""

    def __init__(self, low, high, global_batch_info):
        self.clip_ratio = self.clip_ratio_low = low
        self.clip_ratio_high = high
        self.global_batch_info = global_batch_info

    def get(self, name, default):
        return getattr(self, name, default)


class Mentioned:
    """In the place of a class that is only named."""


named("tensordict", TensorDict=Mentioned, TensorDictBase=Mentioned)
named("tensordict.utils", expand_right=None)
named("omegaconf", DictConfig=Mentioned)

for name in ("verl", "verl.utils", "verl.trainer", "verl.trainer.ppo", "verl.workers"):
    bare_package(name)
groupwise = importlib.import_module("verl.utils.groupwise")
sys.modules["verl.utils"].as_torch_index = groupwise.as_torch_index
sys.modules["verl.utils"].group_mean_std = groupwise.group_mean_std
named("verl.workers.config", ActorConfig=ActorConfig)
named("verl.workers.config.actor", PolicyLossConfig=Mentioned)
named("verl.protocol", DataProto=Mentioned)
core_algos = importlib.import_module("verl.trainer.ppo.core_algos")
torch_functional = importlib.import_module("verl.utils.torch_functional")
rollout_corr_helper = importlib.import_module("verl.trainer.ppo.rollout_corr_helper")

for name in ("torchrl", "torchrl.objectives", "torchrl.objectives.value"):
    bare_package(name)
value_functional = importlib.import_module("torchrl.objectives.value.functional")

# So that nobody else takes them for the libraries.
for name in ("tensordict", "tensordict.utils", "omegaconf"):
    del sys.modules[name]
