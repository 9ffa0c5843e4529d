"""Games that TextWorld generates, compiles and plays."""

import os
import pathlib
import re
import shutil
import tempfile

import textworld
from gradus import find
from textworld import EnvInfos, GameOptions
from textworld.generator import compile_game, make_game

# By level: rooms, objects and steps of the quest.
SIZES = {1: (1, 3, 1), 2: (2, 4, 2), 3: (4, 8, 3), 4: (6, 12, 5)}
GAMES = pathlib.Path(os.environ["GRADUS_TEXTWORLD_GAMES"])
SEEN = EnvInfos(admissible_commands=True, max_score=True, won=True, lost=True, objective=True, feedback=True)


def options(level, seed):
    made = GameOptions()
    made.seeds = seed
    made.nb_rooms, made.nb_objects, made.quest_length = SIZES[level]
    return made


def compiled(level, seed, game=None):
    """The file of the game, made if it is not there: a second process that makes it makes the same."""
    name = f"{level}-{seed}"
    file = GAMES / name / "game.z8"
    if not file.exists():
        GAMES.mkdir(parents=True, exist_ok=True)
        folder = pathlib.Path(tempfile.mkdtemp(dir=GAMES))
        made = options(level, seed)
        made.path = str(folder / "game.z8")
        compile_game(game or make_game(options(level, seed)), made)
        try:
            folder.rename(GAMES / name)
        except OSError:
            shutil.rmtree(folder)
    return str(file)


def task(split, level, index):
    # A game has its seed's map, things and names: no two seeds had the same one where it was looked.
    seed = find(split, index, lambda seed: seed, lambda seed: seed)
    game = make_game(options(level, seed))
    session = Session(compiled(level, seed, game))
    calls = [command for quest in game.quests for command in quest.commands]
    prompt = f"{game.objective}\n{session.shown()}"
    session.close()
    return {"prompt": prompt, "info": {"level": level, "seed": seed, "walkthrough": calls}}


def open(task, seed):
    return Session(compiled(task["info"]["level"], task["info"]["seed"]))


class Session:
    def __init__(self, file):
        self.env = textworld.start(file, SEEN)
        self.state = self.env.reset()
        self.score = 0
        # The banner and the objective come first, and the room last.
        room = self.state.feedback.rfind("-= ")
        self.text = tidy(self.state.feedback[max(room, 0) :])

    def shown(self):
        commands = "\n".join(self.state.admissible_commands)
        return f"{self.text}\nYou can:\n{commands}"

    def act(self, name, arguments):
        before = self.score
        self.state, score, done = self.env.step(" ".join(arguments["command"].split())[:200])
        self.score = score or 0
        self.text = tidy(self.state.feedback)
        return {"text": self.text if done else self.shown(), "reward": float(self.score - before), "done": done}

    def end(self, answer, by):
        most = self.state.max_score or 1
        return {"reward": self.score / most, "info": {"won": bool(self.state.won), "score": self.score, "of": most}}

    def close(self):
        self.env.close()


def tidy(text):
    """Without the prompt and the line that shows place and score."""
    text = re.sub(r"\n>\s.*", "", text, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n", text).strip()
