"""gradus.checkpoint/1 (docs/learner-contract.md): files in Hugging Face's layout, and a manifest that is written last."""

import json
import re
from dataclasses import dataclass, field

import torch

import tensors_file
from fault import Fault
from network import parsed
from objects import ObjectStore, Ref, json_bytes, parse_json, ref_of, sha256_of

FORMAT = "gradus.checkpoint/1"
CREATED_BY = "gradus 0.1.0 torch"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_MODEL = "adapter_model.safetensors"
CRITIC = "critic.safetensors"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
MAX_SHARD_BYTES = 5_000_000_000
"""The bound of save_pretrained of transformers."""
TRAIN_REQUEST = "train_request.json"
"""In a checkpoint without moments: the step that made it, by which they are made again."""

Weights = dict[str, torch.Tensor]


@dataclass
class Trained:
    """Weights by their stored names in their stored order, with Adam's moments, empty before the first update."""

    weights: Weights
    first: Weights = field(default_factory=dict)
    second: Weights = field(default_factory=dict)
    updates: int = 0

    def afresh(self) -> "Trained":
        return Trained(self.weights)

    def without_moments(self) -> "Trained":
        return Trained(self.weights, updates=self.updates)


@dataclass
class Checkpoint:
    files: dict[str, bytes]
    """The small files of the model, which training does not change."""
    policy: Trained
    """All weights; with an adapter its matrices, and `base_weights` are what they are beside."""
    lora: dict | None = None
    base: dict | None = None
    """The checkpoint of the same run whose weights the adapter is for."""
    base_weights: Weights = field(default_factory=dict)
    critic: Trained | None = None

    @property
    def config(self) -> dict:
        return parsed(self.files, "config.json")

    def merged(self) -> Weights:
        """W + s B A, in the order of the base, rounded once."""
        if self.lora is None:
            return self.policy.weights
        merged = dict(self.base_weights)
        for module in adapted_modules(self.base_weights, self.lora):
            a, b = (self.policy.weights[adapter_name(module, matrix)].double() for matrix in "AB")
            base = self.base_weights[f"{module}.weight"]
            merged[f"{module}.weight"] = (base.double() + lora_scale(self.lora) * (b @ a)).float()
        return merged


def lora_scale(lora: dict) -> float:
    """α / r; α / √r for rank-stabilized LoRA (Kalajdzievski 2023)."""
    return lora["alpha"] / (lora["rank"] ** 0.5 if lora["rsLora"] else lora["rank"])


def adapter_name(module: str, matrix: str) -> str:
    return f"base_model.model.{module}.lora_{matrix}.weight"


def adapted_modules(weights: Weights, lora: dict) -> list[str]:
    modules = [name.removesuffix(".weight") for name in weights if name.endswith(".weight")]
    return [module for module in modules if module.split(".")[-1] in lora["targetModules"]]


def load(store: ObjectStore, ref: dict, moments: bool = True) -> Checkpoint:
    """Everything of a checkpoint, digests checked; `moments`: with what only training needs. Moments are empty where the
    checkpoint has a step in their place (`made_by`)."""
    manifest = manifest_of(store, ref)
    names = manifest["files"]
    small = [n for n in names if not n.endswith(".safetensors") and n not in (ADAPTER_CONFIG, TRAIN_REQUEST, INDEX)]
    files = {name: store.get(names[name]) for name in small}
    base = manifest.get("base")
    stored: Weights = {}
    for name in [ADAPTER_MODEL] if base else weight_files(names):
        stored |= floats(store.get(names[name]), "the weights")
    checkpoint = Checkpoint(files, Trained(stored))
    if base:
        checkpoint.base = base
        checkpoint.base_weights = load(store, base, moments=False).merged()
        checkpoint.lora = lora_of(parse_json(store.get(names[ADAPTER_CONFIG]), ADAPTER_CONFIG))
    if not moments:
        return checkpoint
    optimizer = floats(store.get(names["optimizer.safetensors"]), "the optimizer's state")
    checkpoint.policy = trained_of(stored, optimizer, manifest["updates"])
    if CRITIC in names:
        tensors, metadata = tensors_file.read(store.get(names[CRITIC]), CRITIC)
        weights = {name: t for name, t in tensors.items() if not name.startswith(("m.", "v."))}
        checkpoint.critic = trained_of(weights, tensors, int(metadata["updates"]))
    return checkpoint


def made_by(store: ObjectStore, ref: dict) -> dict | None:
    """The step that makes a checkpoint's moments again; None where it has them, or there was no update."""
    file = manifest_of(store, ref)["files"].get(TRAIN_REQUEST)
    return None if file is None else store.get_json(file)


def instead_of_moments(request: dict) -> dict | None:
    """The step itself where its checkpoint is to keep no moments."""
    every = (request.get("compute") or {}).get("saveOptimizerEvery")
    return None if every is None or request["step"] % every == 0 else request


def trained_of(weights: Weights, tensors: Weights, updates: int) -> Trained:
    if not any(name.startswith("m.") for name in tensors):
        return Trained(weights, updates=updates)
    try:
        return Trained(weights, *({n: tensors[f"{p}.{n}"] for n in weights} for p in "mv"), updates)
    except KeyError as error:
        raise Fault("store", "weights-mismatch", f"the optimizer's state lacks {error}") from error


def floats(data: bytes, what: str) -> Weights:
    return {name: tensor.float() for name, tensor in tensors_file.read(data, what)[0].items()}


def manifest_of(store: ObjectStore, ref: dict) -> dict:
    manifest = store.get_json(ref["manifest"])
    folder = ref["manifest"]["key"].rsplit("/", 1)[0]
    problem = None
    if manifest.get("format") != FORMAT:
        problem = f"its format is {manifest.get('format')}"
    elif any(file["key"] != f"{folder}/{name}" for name, file in manifest["files"].items()):
        problem = f"it names files that are not in {folder}"
    elif not manifest.get("base") and not weight_files(manifest["files"]):
        problem = "it names no weights, or not all of their shards"
    if problem:
        message = f"{ref['manifest']['key']} is not a manifest of {FORMAT}: {problem}. Use another checkpoint"
        raise Fault("store", "invalid-manifest", message)
    if version_of({name: file["sha256"] for name, file in manifest["files"].items()}, manifest.get("base")) != ref["weights"]:
        raise conflict(ref["manifest"]["key"])
    return manifest


def version_of(digests: dict[str, str], base: dict | None) -> str:
    """The SHA-256 of model.safetensors; of shards, that of the digests of their index and of each in order; of an adapter, that
    of the base's version and of the digests of its two files."""
    if base:
        parts = [base["weights"], digests[ADAPTER_CONFIG], digests[ADAPTER_MODEL]]
    elif weight_files(digests) == [SINGLE]:
        return digests[SINGLE]
    else:
        parts = [digests[name] for name in [INDEX, *weight_files(digests)]]
    return sha256_of("\n".join(parts).encode())


def weight_files(names) -> list[str]:
    """The files of weights among these names, in order; empty where some are missing."""
    if SINGLE in names:
        return [SINGLE]
    shards = sorted(name for name in names if SHARD.fullmatch(name))
    whole = INDEX in names and shards == [shard_name(i, len(shards)) for i in range(len(shards))]
    return shards if whole else []


def shard_name(index: int, count: int) -> str:
    return f"model-{index + 1:05d}-of-{count:05d}.safetensors"


def shards_of(weights: Weights, most: int) -> dict[str, Weights]:
    """Which file has which weights, as save_pretrained shares them out: in their order, as many as fit."""
    shards: list[Weights] = [{}]
    size = 0
    for name, tensor in weights.items():
        extent = tensor.numel() * 4
        if size > 0 and size + extent > most:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += extent
    if len(shards) == 1:
        return {SINGLE: shards[0]}
    return {shard_name(i, len(shards)): shard for i, shard in enumerate(shards)}


def index_of(shards: dict[str, Weights]) -> bytes:
    total = sum(tensor.numel() * 4 for shard in shards.values() for tensor in shard.values())
    places = {name: file for file, shard in shards.items() for name in shard}
    index = {"metadata": {"total_size": total}, "weight_map": places}
    return f"{json.dumps(index, indent=2, ensure_ascii=False)}\n".encode()


def lora_of(config: dict) -> dict:
    if config.get("peft_type") != "LORA":
        raise Fault("store", "invalid-adapter", f"peft_type is {config.get('peft_type')}, not LORA")
    return {
        "rank": config["r"],
        "alpha": config["lora_alpha"],
        "targetModules": config["target_modules"],
        "rsLora": config.get("use_rslora", False),
    }


def peft_config(lora: dict, base: str) -> dict:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora["rank"],
        "lora_alpha": lora["alpha"],
        "lora_dropout": 0,
        "target_modules": list(lora["targetModules"]),
        "use_rslora": lora["rsLora"],
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "modules_to_save": None,
    }


def contents_of(
    checkpoint: Checkpoint, step: dict | None = None, most: int = MAX_SHARD_BYTES
) -> dict[str, bytes]:
    """Every file but the manifest, by name, in the order in which a manifest has them; `step` in the place of moments;
    weights of more bytes than `most` in shards."""
    policy, critic = checkpoint.policy, checkpoint.critic
    if step:
        policy, critic = policy.without_moments(), critic and critic.without_moments()
    contents = dict(checkpoint.files)
    updates = {"updates": str(policy.updates)}
    contents["optimizer.safetensors"] = tensors_file.write(prefixed(policy), updates)
    if step:
        contents[TRAIN_REQUEST] = json_bytes(step)
    if critic:
        tensors = critic.weights | prefixed(critic)
        contents[CRITIC] = tensors_file.write(tensors, {"updates": str(critic.updates)})
    if checkpoint.lora is None:
        shards = shards_of(policy.weights, most)
        contents |= {name: tensors_file.write(shard, {"format": "pt"}) for name, shard in shards.items()}
        if len(shards) > 1:
            contents[INDEX] = index_of(shards)
    else:
        peft = peft_config(checkpoint.lora, f"sha256:{checkpoint.base['weights']}")
        contents[ADAPTER_CONFIG] = f"{json.dumps(peft, indent=2, ensure_ascii=False)}\n".encode()
        contents[ADAPTER_MODEL] = tensors_file.write(policy.weights, {"format": "pt"})
    return contents


def prefixed(trained: Trained) -> Weights:
    first = {f"m.{name}": tensor for name, tensor in trained.first.items()}
    return first | {f"v.{name}": tensor for name, tensor in trained.second.items()}


def save(store: ObjectStore, request: dict, checkpoint: Checkpoint, backend: str) -> dict:
    """The files, then the manifest, which makes them a checkpoint; its ref. An attempt that is repeated takes over what an
    earlier one uploaded. Raises Fault("store", "checkpoint-conflict") for other bytes under the same step and weights."""
    most = (request.get("compute") or {}).get("maxShardBytes", MAX_SHARD_BYTES)
    contents = contents_of(checkpoint, instead_of_moments(request), most)
    digests = {name: sha256_of(data) for name, data in contents.items()}
    weights = version_of(digests, checkpoint.base)
    folder = f"runs/{request['run']}/checkpoints/{request['step']:06d}-{weights[:12]}"
    key = f"{folder}/manifest.json"
    committed = store.head(key)
    if committed:
        there = store.get_json(committed)
        # Moments that differ would be another future.
        if any(there["files"].get(name, {}).get("sha256") != digest for name, digest in digests.items()):
            raise conflict(key)
        return {"manifest": committed, "weights": weights, "step": there["step"]}
    files = {}
    for name, data in contents.items():
        kind = "application/json" if name.endswith(".json") else "application/octet-stream"
        files[name] = store.put_once(f"{folder}/{name}", data, kind)
        if files[name]["sha256"] != digests[name]:
            raise conflict(f"{folder}/{name}")
    manifest = {
        "format": FORMAT,
        "run": request["run"],
        "stage": request["stage"],
        "step": request["step"],
        "parent": request["parent"],
        **({"base": checkpoint.base} if checkpoint.base else {}),
        "backend": backend,
        "updates": checkpoint.policy.updates,
        "createdBy": CREATED_BY,
        "files": files,
    }
    ref, kept = store.keep_json(key, manifest)
    return {"manifest": ref, "weights": weights, "step": kept["step"]}


def conflict(key: str) -> Fault:
    return Fault(
        "store",
        "checkpoint-conflict",
        f"{key} belongs to another checkpoint than this one with the same step and weights: run under another name, or "
        "delete its folder if nothing is writing it",
    )
