"""Gymnasium's toy texts, in words: what is drawn there stands here as text."""

import functools

import gymnasium
from gradus import Refusal, different, find, nth
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

ACTIONS = {
    "frozen-lake": ["left", "down", "right", "up"],
    "taxi": ["south", "north", "east", "west", "pickup", "dropoff"],
    "cliff-walking": ["up", "right", "down", "left"],
    "blackjack": ["stick", "hit"],
}
# By level: the side of the lake, and whether its ice is slippery.
LAKES = {1: (3, False), 2: (4, False), 3: (8, False), 4: (4, True)}
# By side: how many different lakes are dealt, where there are few. Of the smallest there are hardly more.
DIFFERENT_LAKES = {3: 50, 4: 300}
TAXI_MAP = ["R: | : :G", " : | : : ", " : : : : ", " | : | : ", "Y| : |B: "]
STOPS = ["R", "G", "Y", "B"]
# Of a step: so the shortest way is the best one.
DISCOUNT = 0.99


def taxi_starts():
    # A passenger waits at one of four stops, and wants to go to another one.
    return [
        [row, column, passenger, to]
        for row in range(5)
        for column in range(5)
        for passenger in range(4)
        for to in range(4)
        if passenger != to
    ]


def cliff_starts():
    # Everywhere but on the cliff and on the goal.
    return [n for n in range(48) if not 37 <= n <= 47]


def lake(size, seed):
    return seed, generate_random_map(size=size, p=0.8, seed=seed)


@functools.cache
def lakes(size):
    return different(DIFFERENT_LAKES[size], functools.partial(lake, size), lambda made: made[1])


def task(game, split, level, index):
    if game == "frozen-lake":
        size, slippery = LAKES[level]
        if size in DIFFERENT_LAKES:
            seed, rows = nth(split, index, lakes(size))
        else:
            seed, rows = find(split, index, functools.partial(lake, size), lambda made: made[1])
        start = {"rows": [str(row) for row in rows], "slippery": slippery, "seed": seed}
    elif game == "taxi":
        start = {"state": nth(split, index, taxi_starts())}
    elif game == "cliff-walking":
        start = {"state": nth(split, index, cliff_starts())}
    else:
        start = {"seed": find(split, index, lambda seed: seed, lambda seed: seed)}
    info = {"game": game, **start}
    session = Session(info)
    prompt = f"{session.rules()}\n{session.shown()}"
    session.close()
    return {"prompt": prompt, "info": info}


def open(task, seed):
    return Session(task["info"])


class Session:
    def __init__(self, info):
        self.info = info
        self.game = info["game"]
        self.success = False
        self.total = 0.0
        if self.game == "frozen-lake":
            self.env = gymnasium.make(
                "FrozenLake-v1", desc=info["rows"], is_slippery=info["slippery"], max_episode_steps=100
            )
        else:
            names = {"taxi": "Taxi-v4", "cliff-walking": "CliffWalking-v1", "blackjack": "Blackjack-v1"}
            steps = {} if self.game == "blackjack" else {"max_episode_steps": 200}
            self.env = gymnasium.make(names[self.game], **steps)
        self.seen, _ = self.env.reset(seed=info.get("seed", 0))
        if self.game == "taxi":
            self.begin(self.env.unwrapped.encode(*info["state"]))
        if self.game == "cliff-walking":
            self.begin(info["state"])

    def begin(self, state):
        self.env.unwrapped.s = self.seen = state

    def act(self, name, arguments):
        action = arguments["action"]
        if action not in ACTIONS[self.game]:
            raise Refusal(f"action must be one of {', '.join(ACTIONS[self.game])}")
        self.seen, reward, terminated, truncated, _ = self.env.step(ACTIONS[self.game].index(action))
        reward = float(reward)
        self.total += reward
        if terminated:
            self.success = {"taxi": reward > 0, "cliff-walking": True}.get(self.game, reward > 0)
        over = " It is over." if terminated or truncated else ""
        return {"text": self.shown() + over, "reward": reward, "done": terminated or truncated}

    def end(self, answer, by):
        return {"reward": 1.0 if self.success else 0.0, "info": {"return": self.total, "success": self.success}}

    def close(self):
        self.env.close()

    def rules(self):
        actions = ", ".join(ACTIONS[self.game])
        return {
            "frozen-lake": "Walk over the frozen lake from S to G. F is ice, H a hole, P is you."
            + (" The ice is slippery: you may slide to a side." if self.info.get("slippery") else ""),
            "taxi": "Drive the taxi to the passenger, pick up, drive to the destination, and drop off. | is a wall.",
            "cliff-walking": "Walk to G without stepping on the cliff C, which brings you back to the corner. P is you.",
            "blackjack": "Blackjack: come closer to 21 than the dealer, and not above it.",
        }[self.game] + f" Actions: {actions}."

    def shown(self):
        if self.game == "frozen-lake":
            rows = self.info["rows"]
            at = int(self.seen)
            return drawn([list(row) for row in rows], at // len(rows), at % len(rows))
        if self.game == "cliff-walking":
            grid = [["."] * 12 for _ in range(4)]
            grid[3][1:] = [*"CCCCCCCCCC", "G"]
            return drawn(grid, int(self.seen) // 12, int(self.seen) % 12)
        if self.game == "taxi":
            row, column, passenger, to = (int(n) for n in self.env.unwrapped.decode(int(self.seen)))
            where = "in the taxi" if passenger == 4 else f"at {STOPS[passenger]}"
            taxi = f"Taxi at row {row}, column {column}; passenger {where}; destination {STOPS[to]}."
            return "\n".join([*TAXI_MAP, taxi])
        mine, dealer, ace = (int(n) for n in self.seen)
        return f"You have {mine}{' with a usable ace' if ace else ''}, the dealer shows {dealer}."


def demonstrate(task):
    """The best way by the game's own table of rules. On slippery ice it goes by where it has come to, and may drown."""
    session = Session(task["info"])
    best = best_actions(session.env.unwrapped.P)
    turns = []
    done = False
    while not done:
        action = ACTIONS[session.game][best[int(session.seen)]]
        turns.append({"call": {"name": "act", "arguments": {"action": action}}})
        done = session.act("act", {"action": action})["done"]
    session.close()
    return turns


def best_actions(rules):
    """Value iteration (Bellman 1957): the action of each state that promises most, the first one where several do."""
    values = dict.fromkeys(rules, 0.0)

    def worth(state, action):
        return sum(p * (reward + (0 if over else DISCOUNT * values[then])) for p, then, reward, over in rules[state][action])

    change = 1.0
    while change > 1e-6:
        change = 0.0
        for state in rules:
            most = max(worth(state, action) for action in rules[state])
            change = max(change, abs(most - values[state]))
            values[state] = most
    return {state: max(rules[state], key=lambda action: round(worth(state, action), 6)) for state in rules}


def drawn(grid, row, column):
    grid[row][column] = "P"
    return "\n".join("".join(line) for line in grid)
