"""What credit reads of the sampled tokens of a step besides its episodes, as activities/training/scores.ts has it."""

import torch

from batch import Batch
from fault import Fault

FORMAT = "gradus.scores/1"


def task_episodes(groups: list[dict], truncated: str) -> list[tuple[list[int], dict]]:
    """The episodes that credit may be given for, each behind its prompt: in the order of the groups, their tasks and their
    episodes; what a group has grown since comes with the group that it began with (core/algorithms/task-group.ts)."""
    roots: dict[str, dict] = {}
    for group in groups:
        if group.get("grows") is None:
            roots.setdefault(first_name(group), group)
    found = []
    for group in groups:
        if group.get("grows") in roots:
            continue
        name = first_name(group)
        parts = [g for g in groups if g.get("grows") == name] if roots.get(name) is group else []
        for task, described in enumerate(group["tasks"]):
            prompt = described.get("learntBehind") or described["promptTokens"]
            for episode in (e for part in [group, *parts] for e in part["episodes"]):
                if episode["task"] == task and is_trainable(episode, truncated):
                    found.append((prompt, episode))
    return found


def first_name(group: dict) -> str:
    """What it was called when it was sampled: judged anew by dearer rungs it has a name that tells so."""
    return group["id"].split(".")[0]


def is_trainable(episode: dict, truncated: str) -> bool:
    kind = (episode.get("outcome") or {}).get("kind")
    return kind == "scored" or (kind == "truncated" and truncated == "train")


def read_group(group: dict, key: str) -> dict:
    if group.get("format") != "gradus.rollout/1" or not isinstance(group.get("episodes"), list):
        raise Fault("store", "invalid-trajectory", f"{key} is not of format gradus.rollout/1: use another object")
    return group


def lay_out(episodes: list[tuple[list[int], dict]]) -> Batch:
    """Prompts and completions end to end; the mask is of what the policy sampled."""
    tokens, mask, offsets, kept = [], [], [0], []
    for prompt, episode in episodes:
        tokens += [*prompt, *episode["tokens"]]
        mask += [*([0] * len(prompt)), *episode["mask"]]
        kept += [*([[]] * len(prompt)), *(episode.get("kept") or [[]] * len(episode["tokens"]))]
        offsets.append(len(tokens))
    batch = Batch(torch.tensor(tokens, dtype=torch.int32), offsets, torch.tensor(mask, dtype=torch.float32))
    if any(kept):
        ends = torch.tensor([0, *(len(ids) for ids in kept)]).cumsum(0)
        batch.kept, batch.kept_offsets = torch.tensor([id for ids in kept for id in ids]), ends
    return batch


def completions(batch: Batch, episodes: list[tuple[list[int], dict]], per_token: torch.Tensor) -> torch.Tensor:
    """Of the tokens behind the prompts, end to end."""
    parts = [per_token[batch.span(i)][len(prompt) :] for i, (prompt, _) in enumerate(episodes)]
    return torch.cat(parts) if parts else torch.zeros(0)
