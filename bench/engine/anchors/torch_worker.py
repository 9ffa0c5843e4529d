"""The step of Gradus's PyTorch learner (workers/torch), without its store, on batches of token ids."""

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from hf_folder import weights_of
from protocol import serve

sys.path.insert(0, str(Path(__file__).parents[3] / "workers" / "torch"))

from adam import Adam  # noqa: E402
from batch import Batch  # noqa: E402
from losses import loss_of  # noqa: E402
from network import adapter_parameters, causal_model  # noqa: E402
from ranks import Ranks  # noqa: E402
from step import PolicyUpdates, Surroundings, train  # noqa: E402

state: dict = {}


def load(folder: str, threads: int, compute: dict, lora: dict) -> dict:
    torch.set_num_threads(threads)
    config = json.loads((Path(folder) / "config.json").read_text())
    ranks = Ranks(torch.device("cpu"))
    model = causal_model(config, weights_of(folder), compute, ranks.device)
    adapted = get_peft_model(
        model,
        LoraConfig(
            r=lora["rank"],
            lora_alpha=lora["alpha"],
            lora_dropout=0.0,
            target_modules=list(lora["targetModules"]),
            task_type="CAUSAL_LM",
        ),
    )
    around = Surroundings(ranks, compute, False, None, lambda *_: None)
    adam = Adam(adapter_parameters(adapted), {}, {}, 0)
    state.update(model=adapted, adam=adam, around=around, vocabulary=config["vocab_size"])
    return {"threads": torch.get_num_threads()}


def learn(rows: list[list[int]], prompt_tokens: int, objective: dict, optimizer: dict) -> dict:
    """One update on full rows, whose tokens behind the prompt were sampled; every other one is better than the mean."""
    length = len(rows[0])
    sampled = torch.cat([(torch.arange(length) >= prompt_tokens).float() for _ in rows])
    signs = torch.cat([torch.full((length,), 1.0 if i % 2 == 0 else -1.0) for i in range(len(rows))])
    batch = Batch(
        tokens=torch.tensor([token for row in rows for token in row], dtype=torch.int32),
        offsets=[i * length for i in range(len(rows) + 1)],
        mask=sampled,
        streams={"advantages": sampled * signs, "rollout": sampled * -12.0},
        updates=[list(range(len(rows)))],
    )
    given = (batch, loss_of(objective), optimizer, state["vocabulary"], None, [])
    return train(state["around"], batch, PolicyUpdates(state["around"], state["model"], state["adam"], *given), None)


serve({"load": load, "learn": learn})
