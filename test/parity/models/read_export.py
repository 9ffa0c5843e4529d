"""What transformers makes of an exported folder. Prints one JSON object.

Usage: read_export.py FOLDER TOKENS NEW_TOKENS

TOKENS is a JSON list. `greedy` are the tokens that `generate` appends, `logits` those of the last given token,
`text` how the folder's own tokenizer decodes `greedy`.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    folder, tokens, new_tokens = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    model.eval()
    ids = torch.tensor([tokens])
    with torch.no_grad():
        logits = model(ids).logits[0, -1]
        greedy = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=new_tokens,
            temperature=None,
            top_p=None,
            top_k=None,
        )
    greedy = greedy[0, len(tokens) :].tolist()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    print(
        json.dumps(
            {
                "class": type(model).__name__,
                "missing": sorted(report["missing_keys"]),
                "unexpected": sorted(report["unexpected_keys"]),
                "logits": logits.tolist(),
                "greedy": greedy,
                "text": tokenizer.decode(greedy),
            }
        )
    )


if __name__ == "__main__":
    main()
