"""The process that the code under test lives in. It has no tests: it is asked to import, call and read, and answers.

Nothing that is said here is believed; what it answers is compared in the process of the tests. Its standard streams are
the line to that process; the first thing asked gives it the source.
"""

import copy
import datetime
import importlib
import inspect
import operator
import os
import resource
import sys
import types
from collections.abc import Mapping, Sequence, Set

# Nobody has made it before: in a container of Harbor's, who worked there cannot know its name.
ROOT = f"/tmp/code-{os.urandom(16).hex()}"
# Of an instance of a subclass, the value of the type that it derives from.
PLAIN = {
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    **{kind: lambda value, kind=kind: kind(*MADE[kind](value)) for kind in (datetime.datetime, datetime.date, datetime.time)},
}


class Code(Peer):
    def __init__(self, read, write) -> None:
        super().__init__(read, write)
        self._stand_ins: dict = {}
        self._foreign: dict = {}

    # The other side is trusted here.
    def may_look_up(self, name: str) -> bool:
        return True

    def number_of(self, value):
        return self._foreign.get(id(value))

    def describe(self, value):
        if isinstance(value, type):
            return self._about_class(value)
        about = {"class": self.pack(type(value))}
        if isinstance(value, tuple(PLAIN)):
            # What does not change is said at once: who is asked again could say something else.
            about["value"] = self.pack(self._plain(value))
        if isinstance(value, BaseException):
            about["text"] = str(value)
        if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
            about["binds"] = isinstance(value, types.FunctionType)
        return about

    def _about_class(self, kind: type) -> dict:
        names = [name for name in sorted(FORWARDED) if has_method(kind, f"__{name}__")]
        bases = [self.pack(base) for base in kind.__bases__]
        return {"name": kind.__name__, "module": kind.__module__, "bases": bases, "methods": names}

    def stand_in(self, number: int, about):
        known = self._stand_ins.get(number)
        if known is None:
            known = self._stand_ins[number] = _made(self, number, about)
            self._foreign[id(known)] = number
        return known

    def raised(self, error: BaseException):
        number = self._foreign.get(id(error))
        if number is not None:
            return {"yours": number}
        plain = {}
        for name, value in vars(error).items():
            try:
                plain[name] = self.pack(value)
            except Exception:
                continue
        try:
            arguments = [self.pack(one) for one in error.args]
        except Exception:
            arguments = []
        return {"class": self.pack(type(error)), "arguments": arguments, "text": str(error), "plain": plain}

    def to_raise(self, told) -> BaseException:
        if "mine" in told:
            number = told["mine"]
            error = self._stand_ins.get(number)
            if error is None:
                base = self.unpack(told["base"])
                error = self._stand_ins[number] = type("ForeignError", (base,), {})(told["text"])
                self._foreign[id(error)] = number
            return error
        return self.unpack(told["class"])(*[self.unpack(one) for one in told["arguments"]])

    # What can be asked.
    def serve(self, what: str, arguments: list):
        return getattr(self, f"do_{what}")(*arguments)

    def do_begin(self, tree: dict, source_roots: list, cpu_seconds: int):
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        os.mkdir(ROOT, 0o700)
        for path, text in tree.items():
            file = os.path.join(ROOT, path)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w", encoding="utf-8", newline="") as out:
                out.write(text)
        os.chdir(ROOT)
        sys.path += [os.path.join(os.getcwd(), root) for root in source_roots]

    def do_import(self, name: str):
        importlib.import_module(name)
        return hasattr(sys.modules[name], "__path__")

    def do_of_module(self, name: str, attribute: str):
        module = sys.modules[name]
        if attribute == "__all__" and not hasattr(module, "__all__"):
            # But for modules: they are not given.
            return [one for one, value in vars(module).items() if not one.startswith("_") and not isinstance(value, types.ModuleType)]
        return self._but_modules(getattr(module, attribute))

    def do_set_in_module(self, name: str, attribute: str, value):
        setattr(sys.modules[name], attribute, value)

    def do_get(self, value, attribute: str):
        return self._but_modules(getattr(value, attribute))

    def do_set(self, value, attribute: str, new):
        setattr(value, attribute, new)

    def do_delete(self, value, attribute: str):
        delattr(value, attribute)

    def do_call(self, value, arguments: tuple, named: dict):
        return value(*arguments, **named)

    def do_method(self, value, name: str, arguments: list):
        if name == "next":
            return next(value)
        if name in ("copy", "deepcopy", "dir"):
            return {"copy": copy.copy, "deepcopy": copy.deepcopy, "dir": dir}[name](value)
        if name in ("lt", "le", "gt", "ge", "eq"):
            return getattr(operator, name)(value, *arguments)
        method = getattr(type(value), f"__{name}__")
        return method.__get__(value, type(value))(*arguments) if hasattr(method, "__get__") else method(*arguments)

    def do_is_instance(self, value, kind):
        return isinstance(value, kind)

    def do_is_subclass(self, value, kind):
        return issubclass(value, kind)

    def do_methods(self, name: str):
        return self._about_class(look_up(name))["methods"]

    def do_value(self, value):
        """A one-element list with what the object is as a plain value; empty where it is none."""
        found = self._plain(value)
        return [] if found is value else [found]

    def _plain(self, value):
        for kind, plain in PLAIN.items():
            if isinstance(value, kind):
                return plain(value)
        if isinstance(value, Mapping):
            return {key: self._plain(value[key]) for key in value}
        if isinstance(value, tuple):
            return tuple(self._plain(one) for one in value)
        if isinstance(value, Sequence):
            return [self._plain(one) for one in value]
        if isinstance(value, Set):
            return frozenset(value) if isinstance(value, frozenset) else set(value)
        return value

    def _but_modules(self, value):
        if isinstance(value, types.ModuleType) and public_name(value) is None:
            raise AttributeError(f"{value.__name__} is a module: import it")
        return value


def _made(peer: Code, number: int, about: dict):
    """What stands here for a function or an object of the tests."""
    if about["kind"] == "function":
        def stand_in(*arguments, **named):
            return peer.ask("call", stand_in, arguments, named)

        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(stand_in, name, peer.unpack(about[name]))
        if about["parameters"] is not None:
            stand_in.__signature__ = _signature(peer, about["parameters"])
        return stand_in
    methods = {f"__{name}__": _forward(peer, name) for name in about["methods"]}
    methods["__getattr__"] = lambda self, name: peer.ask("get", self, name)
    methods["__setattr__"] = lambda self, name, value: peer.ask("set", self, name, value)
    methods["__delattr__"] = lambda self, name: peer.ask("delete", self, name)
    own_hash = about["hash"]
    methods["__hash__"] = None if own_hash is None else lambda self: own_hash
    return type(about["name"], (), methods)()


def _forward(peer: Code, name: str):
    def method(self, *arguments, **named):
        if name == "call":
            return peer.ask("call", self, arguments, named)
        return peer.ask("method", self, name, list(arguments))

    return method


def _signature(peer: Code, parameters: list) -> inspect.Signature:
    made = []
    for name, kind, *default in parameters:
        given = peer.unpack(default[0]) if default else inspect.Parameter.empty
        made.append(inspect.Parameter(name, inspect._ParameterKind(kind), default=given))
    return inspect.Signature(made)


def main() -> None:
    sys.path[:] = [folder for folder in sys.path if folder]
    line = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    sys.setrecursionlimit(2000)
    Code(*line).listen()
    os._exit(0)


main()
