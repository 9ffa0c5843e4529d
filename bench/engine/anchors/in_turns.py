"""A trainer of transformers in a thread of its own, that stands still while nobody waits for its next steps: then its
weights can be written and judged, and another engine measured."""

import queue
import threading
import time
from collections.abc import Callable

import torch
from transformers import Trainer, TrainerCallback


class InTurns(TrainerCallback):
    """Lets the trainer go so many RL steps at a time, and keeps the time that each took."""

    trainer: Trainer
    updates = 1
    """Optimizer updates of an RL step."""

    def __init__(self) -> None:
        self.asked: queue.Queue = queue.Queue()
        self.done: queue.Queue = queue.Queue()
        self.seconds: list[float] = []
        self.left = 0
        self.since = 0.0

    @classmethod
    def of(cls, trainer_of: Callable[["InTurns"], Trainer], threads: int) -> "InTurns":
        """`trainer_of` gives a trainer with this callback, whose training then waits to be asked for its first step."""
        turns = cls()
        turns.trainer = trainer_of(turns)

        def train() -> None:
            try:
                # The number of threads belongs to the thread that asks for them.
                torch.set_num_threads(threads)
                turns.trainer.train()
                turns.done.put(RuntimeError("there are no more tasks"))
            except Exception as error:
                turns.done.put(error)

        threading.Thread(target=train, daemon=True).start()
        return turns

    def advance(self, steps: int) -> list[float]:
        """Seconds of each of the next `steps` RL steps."""
        before = len(self.seconds)
        self.asked.put(steps)
        if (failure := self.done.get()) is not None:
            raise failure
        return self.seconds[before:]

    def on_train_begin(self, *_: object, **__: object) -> None:
        self.wait()

    def wait(self) -> None:
        self.left = self.asked.get()
        self.since = time.perf_counter()

    def on_step_end(self, args, trainer_state, control, **_: object) -> None:
        if trainer_state.global_step % self.updates:
            return
        now = time.perf_counter()
        self.seconds.append(now - self.since)
        self.since = now
        self.left -= 1
        if self.left == 0:
            self.done.put(None)
            self.wait()
