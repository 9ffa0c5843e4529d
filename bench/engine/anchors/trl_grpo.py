"""TRL's GRPOTrainer on the CPU, with its own tool-calling loop, in steps that others can take turns with."""

import json
from pathlib import Path

import torch
from calculator_task import calculator, reward_of, turns_of
from datasets import Dataset
from in_turns import InTurns
from protocol import serve
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

# The dialect of models from scratch (engine/dialect/gradus/render.ts) as a chat template: tools are not described,
# and a tool's result stands between tags in the assistant's message, which goes on after it.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{ '<tool_response>' + message.content + '</tool_response>' }}
{%- elif message.role == 'assistant' -%}
{{ '<|im_start|>assistant\\n' + message.content }}
{%- for call in message.tool_calls -%}
{{ '<tool_call>' + call.function | tojson + '</tool_call>' }}
{%- endfor -%}
{%- else -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and messages[-1].role != 'tool' -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}"""

# How transformers reads a turn back. What was read before lies before the last result of a tool.
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor_pattern": r"<\|im_start\|>assistant\n|</tool_response>",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|im_end|>", "content": "text"},
    },
}

state: dict = {}


def load(folder: str, tasks: str, threads: int, settings: dict) -> dict:
    """`tasks`: a JSON file, all steps' tasks in order. `settings`: of the spec, by its own names."""
    tokenizer = AutoTokenizer.from_pretrained(folder, clean_up_tokenization_spaces=False)
    tokenizer.pad_token = "<|pad|>"
    # The tokens that end a turn are in generation_config.json; TRL cuts its dummy conversation after this one.
    tokenizer.eos_token = "</tool_call>"
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.response_template = RESPONSE_TEMPLATE
    state.update(folder=folder, tokenizer=tokenizer, threads=threads, settings=settings)
    state["tasks"] = json.loads(Path(tasks).read_text())
    # Nothing is saved there, but it is made.
    state["output"] = str(Path(tasks).with_name("trl-output"))
    torch.set_num_threads(threads)
    return {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()}


def judge(episodes: list[dict], prompts: list[str], expressions: list[str]) -> dict:
    """What this side makes of episodes that were played, of prompts, and of calls."""
    messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
    tokens = state["tokenizer"].apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    return {
        "rewards": [reward_of(episode["turns"], episode["answer"]) for episode in episodes],
        "prompts": tokens,
        "results": [calculator(expression) for expression in expressions],
    }


def reward(completion_ids: list[list[int]], answer: list[str], **_: object) -> list[float]:
    texts = state["tokenizer"].batch_decode(completion_ids, skip_special_tokens=False)
    return [reward_of(turns_of(text), expected) for text, expected in zip(texts, answer, strict=True)]


def trainer_of(turns: InTurns) -> GRPOTrainer:
    settings = state["settings"]
    groups, samples, minibatch = (settings[name] for name in ("groupsPerStep", "numGenerations", "minibatch"))
    optimizer = settings["optimizer"]
    # Several updates of one rollout, as ours makes them.
    parts = -(-groups * samples // minibatch)
    updates = parts * settings["numIterations"]
    torch.manual_seed(settings["seed"])
    config = GRPOConfig(
        output_dir=state["output"],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=settings["seed"],
        # Nothing but training.
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        # The data, in its order.
        shuffle_dataset=False,
        max_steps=updates * (len(state["tasks"]) // groups),
        per_device_train_batch_size=minibatch,
        gradient_accumulation_steps=1,
        steps_per_generation=parts,
        num_generations=samples,
        # Sampling.
        temperature=settings["temperature"],
        top_p=1.0,
        top_k=0,
        max_completion_length=settings["maxCompletionTokens"],
        max_tool_calling_iterations=settings["maxTurns"] - 1,
        # The algorithm: GRPO with DAPO's token mean and clip.
        loss_type="dapo",
        scale_rewards="group",
        beta=settings["beta"],
        epsilon=settings["clipRatioLow"],
        epsilon_high=settings["clipRatioHigh"],
        num_iterations=settings["numIterations"],
        # The optimizer: weight decay 0 makes AdamW Adam.
        learning_rate=optimizer["learningRate"],
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=optimizer["warmupUpdates"],
        adam_beta1=optimizer["beta1"],
        adam_beta2=optimizer["beta2"],
        adam_epsilon=optimizer["epsilon"],
        weight_decay=0.0,
        max_grad_norm=optimizer["maxGradientNorm"],
    )
    turns.updates = updates
    rows = [
        {"prompt": [{"role": "user", "content": task["prompt"]}], "answer": task["answer"]} for task in state["tasks"]
    ]
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(state["folder"], dtype=torch.float32),
        processing_class=state["tokenizer"],
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_list(rows),
        tools=[calculator],
        callbacks=[turns],
    )


def start() -> dict:
    """A new trainer, with the weights as they were, that has not taken a step."""
    state["turns"] = InTurns.of(trainer_of, state["threads"])
    return {}


def advance(steps: int) -> dict:
    """`steps` RL steps: a rollout and the updates on it each. `stepSeconds` are theirs."""
    return {"stepSeconds": state["turns"].advance(steps)}


def save(folder: str) -> dict:
    """The weights as they are now."""
    state["turns"].trainer.model.save_pretrained(folder)
    return {}


serve({"load": load, "judge": judge, "start": start, "advance": advance, "save": save})
