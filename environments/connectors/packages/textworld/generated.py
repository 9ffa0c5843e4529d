"""Games that TextWorld generates, compiles and plays."""

import os
import pathlib
import re
import shutil
import tempfile

import textworld
from gradus import Refusal, find
from textworld import EnvInfos, GameOptions
from textworld.generator import compile_game, make_game

# By level: rooms, objects and steps of the quest.
SIZES = {1: (1, 3, 1), 2: (2, 4, 2), 3: (4, 8, 3), 4: (6, 12, 5)}
GAMES = pathlib.Path(os.environ["GRADUS_TEXTWORLD_GAMES"])
SEEN = EnvInfos(admissible_commands=True, max_score=True, won=True, lost=True, objective=True, feedback=True)
# Commands to the interpreter, not to the game: they write files, or take the game elsewhere than its calls do.
INTERPRETERS = {
    *("q", "quit", "restart", "restore", "restrict", "save", "undo", "verify"),
    *("noscript", "script", "transcript", "unscript"),
}
# An interpreter looks at no more of a word, and words end at these.
LETTERS = 9
BETWEEN_WORDS = re.compile(r'[ .,"]+')


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
    # By seeds: that no two of them make the same game is likely at the higher levels, and not looked at.
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
        self.state, score, done = self.env.step(self.command(arguments["command"]))
        self.score = score or 0
        self.text = tidy(self.state.feedback)
        return {"text": self.text if done else self.shown(), "reward": float(self.score - before), "done": done}

    def command(self, said):
        """What is given to the game. Several commands may stand in one, so each word is looked at."""
        command = " ".join(said.split())[:200]
        if command in self.state.admissible_commands:
            return command
        if not re.fullmatch(r"[ -~]+", command):
            raise Refusal("a command is written in letters, and has at least one")
        for word in BETWEEN_WORDS.split(command.lower()):
            if word.startswith("tw-") or word[:LETTERS] in {known[:LETTERS] for known in INTERPRETERS}:
                raise Refusal(f"{word} is no command of the game")
        return command

    def end(self, answer, by):
        most = self.state.max_score or 1
        return {"reward": self.score / most, "info": {"won": bool(self.state.won), "score": self.score, "of": most}}

    def close(self):
        self.env.close()


def tidy(text):
    """Without the prompt and the line that shows place and score."""
    text = re.sub(r"\n>\s.*", "", text, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n", text).strip()
