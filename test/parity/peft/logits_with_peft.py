"""Loads a base and an adapter with transformers and PEFT, and writes the logits [B * T, V] of the tokens of a safetensors
file. Usage: python logits_with_peft.py BASE ADAPTER TOKENS OUT"""

import sys

from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

base, adapter, tokens_file, out = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").float()
model = PeftModel.from_pretrained(model, adapter).eval()
tokens = load_file(tokens_file)["tokens"].long()
logits = model(tokens).logits.detach()
save_file({"logits": logits.reshape(-1, logits.shape[-1]).contiguous()}, out)
