"""Everything that a module can do to whoever calls it."""

import io
import os
import random
import subprocess
import sys
import time

from gradus import Refusal

print("imported", flush=True)
calls = 0


def add(a, b):
    return a + b


def count():
    global calls
    calls += 1
    return calls


def draw():
    return random.random()


def pid():
    return os.getpid()


def refuse(why):
    raise Refusal(why)


def fail():
    raise ValueError("no such luck")


def hang():
    while True:
        pass


def slow(seconds, value):
    time.sleep(seconds)
    return value


def chatter():
    print('{"id": 1, "value": "printed"}', flush=True)
    sys.stdout.write("no newline")
    os.write(1, b"\nfrom 1 {}\n")
    return "returned"


def nonsense():
    return {1, 2, 3}


def not_a_number():
    return float("nan")


def die():
    os._exit(3)


def leave():
    sys.exit(4)


def eat():
    return len(bytearray(8 * 2**30))


def breed(file):
    """Leaves a process behind, whose id it writes to the file, and hangs."""
    pid = os.fork()
    if pid == 0:
        hang()
    with io.open(file, "w") as out:
        out.write(f"{pid}\n")
    hang()


def breed_away(file, then):
    """A daemon, as daemons begin: in a session of its own, and a child of nobody's."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(3, 256)
            with io.open(file, "w") as written:
                written.write(f"{os.getpid()}\n")
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not (os.path.exists(file) and io.open(file).read().endswith("\n")):
        time.sleep(0.01)
    if then == "hangs":
        time.sleep(600)
    if then == "dies":
        os._exit(3)
    return "returned"


def adopt(count):
    """Ends parents before their children, so that those come to this process, which knows nothing of them."""
    for _ in range(count):
        subprocess.run(["sh", "-c", "true & true"])
    return os.getpid()


def die_with_heir(file):
    """Ends while a process that it has forked holds all that it held."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    with io.open(file, "w") as written:
        written.write(f"{pid}\n")
    os._exit(3)


def forge():
    """Writes answers to every descriptor that it has."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"id": 7, "value": "forged"}\n')
        except OSError:
            pass
    return "returned"


class Counter:
    def __init__(self, task, seed):
        self.n = task["info"]["start"]
        self.seed = seed

    def act(self, name, arguments):
        if name == "hang":
            hang()
        if name == "die":
            die()
        if name == "draw":
            return str(random.random())
        self.n += arguments["by"]
        return {"text": str(self.n), "reward": 0.5 if self.n > 2 else None, "done": self.n > 3}

    def end(self, answer, by):
        return {"reward": float(self.n), "info": {"answer": answer, "by": by}}


def task(split, level, index):
    return {"prompt": f"{split} {level} {index}", "answer": None, "info": {"start": index}}


def open(task, seed):
    return Counter(task, seed)


def verify(task, answer, episode):
    return None if answer is None else {"score": float(answer == task["prompt"]), "evidence": None}
