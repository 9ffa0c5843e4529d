"""BFCL's multi-turn part: its classes, its data, and its check of states and answers after each request."""

import ast
import copy
import importlib
import importlib.resources
import inspect
import json

from bfcl_eval.constants.executable_backend_config import (
    CLASS_FILE_PATH_MAPPING,
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
    STATELESS_CLASSES,
)
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker
from gradus import Refusal

DATA = importlib.resources.files("bfcl_eval") / "data"
# By level: the category that its rows are from. A scenario has the same number in all of them.
CATEGORIES = {1: "base", 2: "miss_param", 3: "long_context"}
CLASSES = [name for name in MULTI_TURN_FUNC_DOC_FILE_MAPPING if "Memory" not in name and name != "WebSearchAPI"]
FINISH = "finish_request"
# Its own answer is none by its own documents: a ticket's number that is text.
LEFT_OUT = {173}


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(level):
    file = f"BFCL_v4_multi_turn_{CATEGORIES[level]}.json"
    answers = {row["id"]: row["ground_truth"] for row in rows(DATA / "possible_answer" / file)}
    return {
        int(row["id"].rsplit("_", 1)[1]): {**row, "ground_truth": answers[row["id"]]} for row in rows(DATA / file)
    }


ROWS = {level: read(level) for level in CATEGORIES}
DOCUMENTS = {
    name: rows(DATA / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]) for name in CLASSES
}
# Imported here, so that no session has to.
TYPES = {name: getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name) for name in CLASSES}


def numbers(split):
    """By a scenario's number, in all levels alike: of ten one is held out and one for tests."""
    return [
        n
        for n in sorted(ROWS[1])
        if n not in LEFT_OUT and {8: "heldout", 9: "test"}.get(n % 10, "train") == split
    ]


def task(split, level, index):
    number = numbers(split)[index]
    row = ROWS[level][number]
    return {
        "prompt": "\n".join(message["content"] for message in row["question"][0]),
        "info": {"level": level, "number": number},
        "tools": tools_of(row),
    }


def tools_of(row):
    excluded = set(row.get("excluded_function", []))
    tools = [
        {
            "name": document["name"],
            "description": document["description"],
            "arguments": {**schema(document["parameters"]), "additionalProperties": False},
        }
        for name in row["involved_classes"]
        for document in DOCUMENTS[name]
        if document["name"] not in excluded
    ]
    finish = "Says that all of the request is done, and brings the next one, if there is one."
    return [*tools, {"name": FINISH, "description": finish, "arguments": NOTHING}]


NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
KINDS = {"dict": "object", "float": "number", "tuple": "array", "list": "array"}


def schema(said):
    """BFCL's words for types as JSON Schema has them."""
    made = {}
    for key, value in said.items():
        if key == "type":
            if value != "any":
                made["type"] = KINDS.get(value, value)
        elif key == "properties":
            made["properties"] = {name: schema(one) for name, one in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = schema(value)
        elif key in ("description", "enum", "required"):
            made[key] = value
    return made


class World:
    """One instance of each class that a row involves."""

    def __init__(self, row, long_context):
        self.instances = {}
        self.functions = {}
        for name in row["involved_classes"]:
            instance = TYPES[name]()
            if name not in STATELESS_CLASSES:
                config = copy.deepcopy(row["initial_config"].get(name, {}))
                instance._load_scenario(config, long_context=long_context)
            self.instances[name] = instance
            for function, method in inspect.getmembers(instance, predicate=inspect.ismethod):
                if not function.startswith("_"):
                    self.functions[function] = method

    def call(self, name, args, kwargs):
        """What BFCL has as the text of a call's result, errors too."""
        try:
            result = self.functions[name](*args, **kwargs)
        except Exception as error:
            return f"Error during execution: {error}"
        if isinstance(result, str):
            return result
        if isinstance(result, dict):
            try:
                return json.dumps(result)
            except (TypeError, ValueError):
                return str(result)
        return str(result)


def parsed(call):
    """`f(1, a=2)` of the data as its name and arguments, without evaluating it."""
    node = ast.parse(call, mode="eval").body
    name = node.func.id
    return name, [ast.literal_eval(arg) for arg in node.args], {kw.arg: ast.literal_eval(kw.value) for kw in node.keywords}


def open(task, seed):
    return Session(task["info"])


class Session:
    def __init__(self, info):
        self.row = ROWS[info["level"]][info["number"]]
        long_context = CATEGORIES[info["level"]] == "long_context"
        self.mine = World(self.row, long_context)
        self.right = World(self.row, long_context)
        self.offered = {tool["name"] for tool in tools_of(self.row)}
        self.request = 0
        self.calls = 0
        self.results = []
        self.fault = None

    def act(self, name, arguments):
        if name == FINISH:
            return self.finish()
        if name not in self.offered:
            raise Refusal(f"there is no function {name} here")
        self.calls += 1
        result = self.mine.call(name, [], arguments)
        self.results.append(result)
        return {"text": result}

    def finish(self):
        self.check()
        if self.fault:
            return {"text": "That request was not done as it should be.", "done": True}
        if self.request == len(self.row["question"]):
            return {"text": "That was all.", "done": True}
        messages = self.row["question"][self.request]
        return {"text": "\n".join(message["content"] for message in messages)}

    def check(self):
        """As BFCL does after each request: the same states, and the right results among those that were got.

        Where nothing can be done yet, because something needed is missing, it looks at nothing: what was called there shows
        in the states after the next request.
        """
        truth = self.row["ground_truth"][self.request]
        right = [self.right.call(*parsed(call)) for call in truth]
        if truth and not self.calls:
            self.fault = "called nothing"
        elif truth:
            for checked in (
                state_checker(self.mine.instances, self.right.instances),
                response_checker(self.results, right, self.request),
            ):
                if not checked["valid"]:
                    self.fault = checked["error_type"]
                    break
        self.request += 1
        self.calls = 0

    def end(self, answer, by):
        # An answer ends the last request as its tool does.
        if by == "answer" and not self.fault and self.request == len(self.row["question"]) - 1:
            self.check()
        requests = len(self.row["question"])
        whole = self.request == requests and not self.fault
        return {"reward": 1.0 if whole else 0.0, "info": {"done": self.request, "of": requests, "fault": self.fault}}


def demonstrate(task):
    """The calls of the data's own answer, request by request."""
    row = ROWS[task["info"]["level"]][task["info"]["number"]]
    functions = World(row, False).functions
    turns = []
    for calls in row["ground_truth"]:
        for name, args, kwargs in map(parsed, calls):
            names = list(inspect.signature(functions[name]).parameters)
            turns.append({"call": {"name": name, "arguments": {**dict(zip(names, args)), **kwargs}}})
        turns.append({"call": {"name": FINISH, "arguments": {}}})
    return turns
