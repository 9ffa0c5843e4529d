"""Writes test/fixtures/peft: a small Llama with random weights, two adapters that PEFT made for it, and what PyTorch
computes with them: logits [B * T, V], gradients of A and B, merged weights. Usage: python make_fixtures.py FOLDER"""

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = {
    "lora": LoraConfig(r=4, lora_alpha=10, target_modules=ALL, lora_dropout=0.0, task_type="CAUSAL_LM"),
    "rslora": LoraConfig(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj"], use_rslora=True, task_type="CAUSAL_LM"),
}
CONFIG = LlamaConfig(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=32,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    tie_word_embeddings=False,
    attn_implementation="eager",
)


def base_model() -> LlamaForCausalLM:
    torch.manual_seed(1)
    model = LlamaForCausalLM(CONFIG).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger than fresh weights, so that every part of the model matters.
            parameter.copy_(torch.randn_like(parameter) * 0.2 + (1 if parameter.dim() == 1 else 0))
    return model


def main(folder: Path) -> None:
    base_model().save_pretrained(folder / "base")
    (folder / "base" / "generation_config.json").unlink(missing_ok=True)
    tokens = torch.randint(0, CONFIG.vocab_size, (2, 12), generator=torch.Generator().manual_seed(2))
    for name, config in CASES.items():
        model = get_peft_model(base_model(), config)
        torch.manual_seed(3)
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "lora_B" in parameter_name:
                    parameter.copy_(torch.randn_like(parameter) * 0.1)
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(-1, CONFIG.vocab_size), tokens[:, 1:].reshape(-1)
        )
        loss.backward()
        expected = {
            "tokens": tokens.int(),
            "logits": logits.detach().reshape(-1, CONFIG.vocab_size).contiguous(),
            "loss": loss.detach().reshape(1),
        }
        for parameter_name, parameter in model.named_parameters():
            if parameter.requires_grad:
                expected["gradient." + parameter_name.replace(".default", "")] = parameter.grad
        model.save_pretrained(folder / name)
        (folder / name / "README.md").unlink(missing_ok=True)
        merged = model.merge_and_unload().state_dict()
        for module in merged:
            if module.split(".")[-2] in config.target_modules:
                expected["merged." + module] = merged[module].contiguous()
        save_file(expected, folder / name / "expected.safetensors")
        print(name, json.dumps({"loss": loss.item()}))


main(Path(sys.argv[1]))
