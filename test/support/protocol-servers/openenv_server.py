"""A corridor to walk, served by OpenEnv: `openenv_server.py PORT`. What it does is a function of the seed."""

import os
import random
import sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from pydantic import Field


class Move(Action):
    """Takes one step."""

    to: str = Field(description="left or right", pattern="^(left|right|nowhere)$")


class Seen(Observation):
    text: str


class Corridor(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()
        self.at, self.goal = 0, 1

    def reset(self, seed=None, episode_id=None, length=3, **kwargs) -> Seen:
        draw = random.Random(seed)
        self.at, self.goal = 0, draw.choice([-1, 1]) * draw.randint(1, length)
        self._state = State(episode_id=episode_id, step_count=0)
        return Seen(text=f"The lamp is {abs(self.goal)} steps to the {'right' if self.goal > 0 else 'left'}.", done=False)

    def step(self, action: Move, timeout_s=None, **kwargs) -> Seen:
        if action.to == "nowhere":
            raise RuntimeError("the floor is gone")
        self.at += 1 if action.to == "right" else -1
        self._state.step_count += 1
        there = self.at == self.goal
        return Seen(text=f"You are at {self.at}.", reward=1.0 if there else 0.0, done=there)

    @property
    def state(self) -> State:
        return self._state

    def close(self):
        # Told of on standard output, for whoever watches that sessions are let go of.
        print(f"closed {self._state.episode_id}", flush=True)


app = create_fastapi_app(Corridor, Move, Seen, max_concurrent_envs=64)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
    os._exit(0)
