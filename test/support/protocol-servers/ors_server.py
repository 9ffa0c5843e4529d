"""A till that adds up, served by the Open Reward Standard: `ors_server.py PORT [PACKAGE]`, ors or openreward.environments."""

import asyncio
import importlib
import sys

import uvicorn
from pydantic import BaseModel, Field

PACKAGE = sys.argv[2] if len(sys.argv) > 2 else "ors"
ors = importlib.import_module(PACKAGE)

GOALS = {"train": list(range(3, 23)), "validation": list(range(23, 27)), "test": list(range(27, 30))}


class Amount(BaseModel):
    amount: int = Field(description="A whole number of coins", ge=1, le=9)


class Patience(BaseModel):
    seconds: float


class Till(ors.Environment):
    def setup(self):
        self.total = 0

    def teardown(self):
        print(f"closed {self.task_spec['goal']}", flush=True)

    @classmethod
    def list_splits(cls):
        return list(GOALS)

    @classmethod
    def list_tasks(cls, split: str):
        return [{"goal": goal} for goal in GOALS[split]]

    def get_prompt(self):
        return [ors.TextBlock(text=f"Pay {self.task_spec['goal']} coins.")]

    @ors.tool
    def pay(self, params: Amount) -> ors.ToolOutput:
        """Puts coins into the till."""
        self.total += params.amount
        goal = self.task_spec["goal"]
        return ors.ToolOutput(
            blocks=[ors.TextBlock(text=f"{self.total} of {goal}")],
            reward=1.0 if self.total == goal else 0.0,
            finished=self.total >= goal,
        )

    @ors.tool
    def count(self) -> ors.ToolOutput:
        """Says what is in the till."""
        return ors.ToolOutput(blocks=[ors.TextBlock(text=str(self.total))])

    @ors.tool
    async def wait(self, params: Patience) -> ors.ToolOutput:
        """Takes its time."""
        await asyncio.sleep(params.seconds)
        self.total += 1
        return ors.ToolOutput(blocks=[ors.TextBlock(text=f"waited; {self.total}")])

    @ors.tool
    def break_down(self) -> ors.ToolOutput:
        """Never works."""
        raise RuntimeError("the till is jammed")


if __name__ == "__main__":
    uvicorn.run(ors.Server([Till]).app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
