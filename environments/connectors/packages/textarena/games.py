"""Games of TextArena for one player, and for two against one who plays at random."""

import functools
import random
import re

import textarena
from gradus import different, find, nth

# The rules of who plays against the policy: what it may do, from the game's state.
OPPONENTS = {
    "Nim": lambda state, rng: nim(state, rng),
    "TicTacToe": lambda state, rng: f"[{rng.choice(free(state))}]",
}
PLAYERS_OWN = textarena.ObservationType.PLAYER_ACTION


def nim(state, rng):
    pile = rng.choice([n for n, size in enumerate(state["piles"]) if size > 0])
    return f"[{pile} {rng.randint(1, state['piles'][pile])}]"


def free(state):
    return [3 * row + column for row in range(3) for column in range(3) if state["board"][row][column] == ""]


def begun(game, seed):
    """Seeded twice, because some games draw from `random` and others from what they are given."""
    random.seed(seed)
    env = textarena.make(f"{game}-raw")
    env.reset(num_players=2 if game.split("-")[0] in OPPONENTS else 1, seed=seed)
    return env


def key(game, made):
    """By what it begins with; where that is always the same, by its seed, by which go opponents, mines and numbers.

    A number of 20 that is only held out would be one that whoever has learnt from the others never guesses.
    """
    seed, env = made
    return seed if game.split("-")[0] in {*OPPONENTS, "Minesweeper", "GuessTheNumber"} else repr(env.state.game_state)


@functools.cache
def seeds_of(game, count):
    """So many seeds with which the game begins differently."""
    made = different(count, lambda seed: (seed, begun(game, seed)), lambda made: key(game, made))
    return [seed for seed, _ in made]


def task(variants, split, level, index):
    game, count = variants[level - 1]
    if count is None:
        seed, env = find(split, index, lambda seed: (seed, begun(game, seed)), lambda made: key(game, made))
    else:
        seed = nth(split, index, seeds_of(game, count))
        env = begun(game, seed)
    return {"prompt": heard(env), "info": {"game": game, "seed": seed}}


def heard(env):
    """What the policy has not read yet, without its own moves."""
    _, observations = env.get_observation()
    return "\n".join(message.strip() for _, message, kind in observations if kind != PLAYERS_OWN)


def open(task, seed):
    return Session(task["info"])


class Session:
    def __init__(self, info):
        game = info["game"]
        self.env = begun(game, info["seed"])
        heard(self.env)
        self.opponent = OPPONENTS.get(game.split("-")[0])
        self.rng = random.Random(info["seed"])
        self.two = self.opponent is not None
        self.done = False

    def act(self, name, arguments):
        self.done, _ = self.env.step(bracketed(arguments["move"]))
        while self.opponent and not self.done and self.env.state.current_player_id == 1:
            self.env.get_observation()
            self.done, _ = self.env.step(self.opponent(self.env.state.game_state, self.rng))
        text = heard(self.env) if not self.done else ""
        if self.done:
            reason = self.env.state.game_info[0].get("reason", "")
            text = f"The game is over. {reason}".strip()
        return {"text": text or "Done.", "done": self.done}

    def end(self, answer, by):
        if not self.done:
            return {"reward": 0.0, "info": {"finished": False}}
        rewards, _ = self.env.close()
        reward = float(rewards[0])
        # Of two players one wins what the other loses. Of one, who has not won has nothing: TextArena gives a part for
        # how near a game was when a bad move ended it, so that it would pay to end it there.
        won = (reward + 1) / 2 if self.two else float(reward >= 1)
        return {"reward": won, "info": {"finished": True, "textarena": reward}}


def bracketed(move):
    move = move.strip()[:200]
    return move if re.fullmatch(r"\[.*\]", move, re.DOTALL) else f"[{move}]"
