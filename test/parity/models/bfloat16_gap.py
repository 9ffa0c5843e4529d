"""How far bfloat16 moves log-probs of models, nats: python bfloat16_gap.py FOLDER... (Python of `npm run setup:torch`).
A line a model: weights rounded and all else float32, then all of it in bfloat16, each over random tokens and over what the
float32 model samples itself. The docs that state these figures are docs/serving.md and docs/log.md."""

import json
import sys

import torch
from transformers import AutoModelForCausalLM

TOKENS = 256


def logprobs(model, tokens):
    with torch.no_grad():
        all_of = model(tokens).logits[:, :-1].float().log_softmax(-1)
    return all_of.gather(-1, tokens[:, 1:, None])[..., 0]


def main(folder: str) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    vocabulary = model.config.vocab_size
    drawn = torch.randint(0, vocabulary, (1, min(TOKENS, model.config.max_position_embeddings)))
    begun = torch.randint(0, vocabulary, (16, 1))
    sampled = model.generate(begun, max_new_tokens=48, min_new_tokens=48, do_sample=True, top_k=0)
    cases = {"random": drawn, "sampled": sampled}
    exact = {name: logprobs(model, tokens) for name, tokens in cases.items()}
    found: dict = {"model": folder, "parameters": sum(p.numel() for p in model.parameters())}

    def compare(what: str) -> None:
        for name, tokens in cases.items():
            gap = (logprobs(model, tokens) - exact[name]).abs()
            found[f"{what}, {name}"] = {"mean": gap.mean().item(), "max": gap.max().item()}

    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    compare("weights rounded")
    model.bfloat16()
    compare("all bfloat16")
    print(json.dumps(found))


for given in sys.argv[1:]:
    main(given)
