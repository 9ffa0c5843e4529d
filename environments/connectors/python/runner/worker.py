"""One process that has the module: a line of JSON in, a line out, one request at a time."""

import ctypes
import hashlib
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import socket
import sys
import traceback
from typing import Any, Protocol

import descendants
from gradus import Refusal

LINUX = sys.platform.startswith("linux")
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# With so many children for which nobody waits a process is worn. It cannot wait for any: the module may want to.
MANY_ENDED = 32
# Longest traceback that is told, characters.
LONGEST_TRACEBACK = 4000


class Functions(Protocol):
    def __getattr__(self, name: str) -> Any: ...


def load(module: str) -> Functions:
    """The module of that name, or that the file holds."""
    if not module.endswith(".py"):
        return importlib.import_module(module)
    folder, file = os.path.split(os.path.abspath(module))
    sys.path.insert(0, folder)
    name = file.removesuffix(".py")
    if name.isidentifier() and name not in sys.modules:
        found = importlib.util.find_spec(name)
        if found and found.origin == os.path.join(folder, file):
            return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"gradus_module_{name}", module)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Also in mid-call, when nobody is left to read the answer. Linux only: elsewhere after the call."""
    if not LINUX:
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(0)


def keep_orphans() -> None:
    """What is started below this process stays below it, whoever of those between ends. Linux only."""
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def serve(link: socket.socket, functions: Functions, memory_bytes: int) -> None:
    end_with_parent()
    keep_orphans()
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answering = Answering(functions)
    for line in link.makefile("rb"):
        request = json.loads(line)
        answer = answering.answer(request)
        if request["do"] == "call" and is_worn():
            answer["worn"] = True
        link.sendall(as_json({"id": request["id"], **answer}, request) + b"\n")
        if answer.get("error", {}).get("type") == "MemoryError":
            return


def is_worn() -> bool:
    try:
        return descendants.ended_children() > MANY_ENDED
    except OSError:
        return True  # it has no descriptor left to look with


class Answering:
    """What a process does for those who ask it: calls of functions, or one session."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.session: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"value": getattr(self, request["do"])(request)}
        except Refusal as refusal:
            return {"refused": str(refusal)}
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return told(error)

    def call(self, request: dict[str, Any]) -> Any:
        function = getattr(self.functions, request["function"], None)
        if not callable(function):
            raise AttributeError(f"the module has no function {request['function']}")
        arguments = request["arguments"]
        # What a function draws depends on what it is asked, and not on who was there before.
        seed_all(seed_of([request["function"], arguments]))
        return function(*arguments)

    def open(self, request: dict[str, Any]) -> None:
        seed = seed_of(request["task"]["ref"])
        seed_all(seed)
        self.session = self.functions.open(request["task"], seed)

    def act(self, request: dict[str, Any]) -> Any:
        return self.session.act(request["name"], request["arguments"])

    def end(self, request: dict[str, Any]) -> Any:
        end = getattr(self.session, "end", None)
        return None if end is None else end(request["answer"], request["by"])

    def close(self, request: dict[str, Any]) -> None:
        close = getattr(self.session, "close", None)
        if close is not None:
            close()


def told(error: BaseException) -> dict[str, Any]:
    lines = "".join(traceback.format_exception(error))
    words = {"type": type(error).__name__, "message": str(error)[:LONGEST_TRACEBACK]}
    return {"error": {**words, "traceback": lines[-LONGEST_TRACEBACK:]}}


def as_json(answer: dict[str, Any], request: dict[str, Any]) -> bytes:
    try:
        return json.dumps(answer, allow_nan=False, default=plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        what = request.get("function", request["do"])
        words = {"type": "NoJson", "message": f"{what} returned what is no JSON: {error}", "traceback": ""}
        return json.dumps({"id": request["id"], "error": words}).encode()


def plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def seed_of(value: Any) -> int:
    """32 bits that depend on a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def seed_all(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
