"""Networks of transformers: a causal model, with an adapter or without, and a critic of its shape."""

import json

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.utils import is_flash_attn_2_available

from fault import Fault
from packing import Rows

MASKED = -1e30
"""Below every logit, and finite: the logit of an id that no token has, or that the sampling had cut."""

Weights = dict[str, torch.Tensor]


def attention(device: torch.device, precision: str) -> str:
    """Flash attention where it is installed and takes the numbers, else PyTorch's own choice of kernels."""
    flash = device.type == "cuda" and precision == "bfloat16" and is_flash_attn_2_available()
    return "flash_attention_2" if flash else "sdpa"


def config_of(config_json: dict):
    """Dropout is for pre-training on text that repeats: a step is a function of its arguments."""
    quiet = {name: 0.0 if is_dropout(name) else value for name, value in config_json.items()}
    try:
        return AutoConfig.for_model(**quiet)
    except (ValueError, TypeError, KeyError) as error:
        message = f"config.json describes no model that transformers knows: {error}"
        raise Fault("store", "invalid-config", message) from error


def is_dropout(name: str) -> bool:
    return name.endswith(("dropout", "pdrop"))


def causal_model(config_json: dict, weights: Weights, compute: dict, device: torch.device) -> nn.Module:
    """In float32, its weights copies of these. Raises Fault("store", "weights-mismatch")."""
    config = config_of(config_json)
    how = attention(device, compute["precision"])
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=how)
    load(model, weights, tied="lm_head.weight")
    model.tie_weights()
    in_float32(model.get_output_embeddings())
    return prepared(model, compute, device)


class Critic(nn.Module):
    """V = hidden · weight + bias, over a network of the policy's shape, in float32 after the network."""

    def __init__(self, network: nn.Module, size: int) -> None:
        super().__init__()
        self.network = network
        self.value_head = nn.Linear(size, 1)

    def forward(self, **inputs) -> torch.Tensor:
        hidden = self.network(**inputs).last_hidden_state
        with torch.autocast(hidden.device.type, enabled=False):
            return self.value_head(hidden.float())[..., 0]


def critic_model(config_json: dict, weights: Weights, compute: dict, device: torch.device) -> tuple[Critic, dict[str, str]]:
    """The critic, and what its parameters are called in a checkpoint, by their names here."""
    config = config_of(config_json)
    how = attention(device, compute["precision"])
    network = AutoModel.from_config(config, dtype=torch.float32, attn_implementation=how)
    critic = Critic(network, config.hidden_size)
    stored = {}
    for name in critic.state_dict():
        inner = name.removeprefix("network.")
        stored[name] = inner if inner.startswith("value_head.") else f"model.{inner}"
    load(critic, {name: weights[kept] for name, kept in stored.items() if kept in weights})
    return prepared(critic, compute, device), stored


def load(model: nn.Module, weights: Weights, tied: str = "") -> None:
    try:
        missing, more = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise Fault("store", "weights-mismatch", f"config.json and weights do not belong together: {error}") from error
    missing = [name for name in missing if name != tied or not model.config.tie_word_embeddings]
    if missing or more:
        raise Fault(
            "store",
            "weights-mismatch",
            f"config.json and weights do not belong together: missing are {missing[:3]}, unknown {more[:3]}. "
            "Use a checkpoint that was saved whole",
        )


def in_float32(head: nn.Linear) -> None:
    """Log-probs are differences of logits: rounded to bfloat16 these would be off by some hundredths (ADR 0013)."""

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return nn.functional.linear(hidden.float(), head.weight, head.bias)

    head.forward = forward


def prepared(model: nn.Module, compute: dict, device: torch.device) -> nn.Module:
    model.to(device)
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.Embedding):
            # transformers leaves the padding token without a gradient, wherever it stands; here rows have no such token.
            module.padding_idx = None
    if compute["gradientCheckpointing"]:
        network = model.network if isinstance(model, Critic) else model
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        # transformers checkpoints layers in this mode only; nothing else differs in it, for there is no dropout.
        model.train()
    return model


def add_adapter(model: nn.Module, lora: dict, weights: Weights) -> nn.Module:
    """Low-rank matrices beside some linear layers, under PEFT's names, which alone are trained."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora["rank"],
        lora_alpha=lora["alpha"],
        lora_dropout=0.0,
        target_modules=list(lora["targetModules"]),
        use_rslora=lora["rsLora"],
        task_type="CAUSAL_LM",
    )
    adapted = get_peft_model(model, config)
    named = adapter_parameters(adapted)
    if set(named) != set(weights):
        odd = sorted(set(named) ^ set(weights))[:3]
        raise Fault("store", "invalid-adapter", f"the adapter is not of this model: {odd} are on one side only")
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])
    return adapted


def adapter_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """By the names that PEFT stores them under."""
    return {n.replace(".default.", "."): p for n, p in model.named_parameters() if ".lora_" in n}


def output(model: nn.Module, rows: Rows, precision: str, device: torch.device) -> torch.Tensor:
    """What the model says at the places that count: logits [n, V], or values [n]. The positions tell sequences apart."""
    inputs = {"input_ids": rows.tokens.to(device), "position_ids": rows.positions.to(device), "use_cache": False}
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        out = model(**inputs)
    everywhere = out if isinstance(out, torch.Tensor) else out.logits
    return everywhere.flatten(0, 1)[rows.at.to(device)].float()


def ids_without_token(tokenizer: dict, rows: int) -> torch.Tensor | None:
    """Booleans [rows]: True where no token of tokenizer.json has the id, as engine/tokenizer/ids-without-token.ts finds them.
    None where all have one, or none is named."""
    vocabulary = (tokenizer.get("model") or {}).get("vocab") or {}
    ids = list(range(len(vocabulary))) if isinstance(vocabulary, list) else list(vocabulary.values())
    ids += [token["id"] for token in tokenizer.get("added_tokens") or [] if token]
    if not ids:
        return None
    unknown = torch.ones(rows, dtype=torch.bool)
    unknown[[i for i in ids if isinstance(i, int) and i < rows]] = False
    return unknown if unknown.any() else None


def parsed(files: dict[str, bytes], name: str) -> dict:
    try:
        return json.loads(files[name])
    except KeyError as error:
        raise Fault("store", "invalid-config", f"the model has no {name}: add it, or take another model") from error
    except ValueError as error:
        raise Fault("store", "invalid-config", f"{name} is not JSON: {error}") from error
