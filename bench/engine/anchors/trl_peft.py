"""TRL's GRPOTrainer with PEFT's LoRA on the CPU: prompts of token ids, one group a step, and how long its parts take."""

import time

import torch
from datasets import Dataset
from in_turns import InTurns
from peft import LoraConfig
from protocol import serve
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

state: dict = {}


class Timed(GRPOTrainer):
    """Keeps what the rollouts of its steps took; the rest of a step is learning."""

    rollout_seconds: list[float] = []

    def _generate_and_score_completions(self, inputs):
        started = time.perf_counter()
        result = super()._generate_and_score_completions(inputs)
        self.rollout_seconds.append(time.perf_counter() - started)
        return result


def load(folder: str, threads: int, precision: str, samples: int, new_tokens: int, prompt: str, lora: dict) -> dict:
    """`precision`: of the base's weights, which stay as they are; `bfloat16` also computes in it."""
    torch.set_num_threads(threads)
    low = precision == "bfloat16"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token

    def trainer_of(turns: InTurns) -> GRPOTrainer:
        config = GRPOConfig(
            output_dir=f"{folder}/trl-output",
            use_cpu=True,
            bf16=low,
            gradient_checkpointing=True,
            seed=1,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            max_steps=1000,
            per_device_train_batch_size=samples,
            num_generations=samples,
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            max_completion_length=new_tokens,
            # All sides sample as many tokens.
            generation_kwargs={"min_new_tokens": new_tokens},
            loss_type="dapo",
            scale_rewards="group",
            beta=0.0,
            learning_rate=1e-4,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=1.0,
        )
        return Timed(
            model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if low else torch.float32),
            processing_class=tokenizer,
            # Half of a group is better than the other: there is something to learn.
            reward_funcs=lambda completion_ids, **_: [float(i % 2) for i in range(len(completion_ids))],
            args=config,
            train_dataset=Dataset.from_list([{"prompt": prompt}] * 1000),
            peft_config=LoraConfig(
                r=lora["rank"],
                lora_alpha=lora["alpha"],
                lora_dropout=0.0,
                target_modules=list(lora["targetModules"]),
                task_type="CAUSAL_LM",
            ),
            callbacks=[turns],
        )

    state["turns"] = InTurns.of(trainer_of, threads)
    return {"threads": torch.get_num_threads(), "promptTokens": len(tokenizer(prompt)["input_ids"])}


def step() -> dict:
    """One step: a rollout of a group and an update on it."""
    (seconds,) = state["turns"].advance(1)
    rollout = Timed.rollout_seconds[-1]
    return {"seconds": seconds, "rollout": rollout, "learn": seconds - rollout}


serve({"load": load, "step": step})
