"""What the tests see of the code under test: modules, classes and objects that stand in for those of its process.

Comparisons are made here: a stand-in is compared by the plain value of its object, and what it is compared with is not
told. What the other process says is data; it names neither code of this one nor anything that the tests have not given it.
"""

import builtins
import collections.abc
import datetime
import functools
import importlib.abc
import importlib.machinery
import inspect
import operator
import os
import sys
import types

SAFE_NAMES = frozenset(
    "builtins:" + name for name in "NotImplemented Ellipsis object type int float complex bool str bytes bytearray list tuple dict set frozenset range slice".split()
)  # fmt: skip
COMPARED = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
# An instance of a subclass of one of these is one here, too.
VALUES = (str, bytes, int, float, complex, datetime.datetime, datetime.date, datetime.time)
CONTAINERS = (dict, list, set)
# Special methods of an object of the tests that the code may use, where its type has them.
LENT = "call len iter next getitem setitem delitem contains bool int float index str repr format enter exit lt le gt ge eq add radd".split()


class Tests(Peer):
    def __init__(self, read, write) -> None:
        super().__init__(read, write)
        self._stand_ins: dict = {}
        self._named: set = set()
        # What the code has said of its objects when it named them first.
        self.abouts: dict = {}
        # What a test has asserted, in a function of its own that the code called, and was not so.
        self._unsaid: BaseException | None = None
        self._kinds: dict = {}

    def may_look_up(self, name: str) -> bool:
        return name in SAFE_NAMES or name in self._named or _is_exception(name)

    def pack(self, value):
        said = super().pack(value)
        if isinstance(said, list) and said[0] == "name":
            self._named.add(said[1])
        return said

    def number_of(self, value):
        if isinstance(type(value), Mirrored) or isinstance(type(value), type) and issubclass(type(value), Mirrored):
            return vars(value).get("_number")
        return None

    def describe(self, value):
        if isinstance(value, (types.ModuleType, types.FrameType, types.CodeType)) or _is_of_tests(value):
            raise TypeError(f"{type(value).__name__} cannot be given to code in another process")
        if isinstance(value, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)):
            about = {name: self.pack(_text(getattr(value, name, None))) for name in ("__name__", "__qualname__", "__doc__", "__module__")}
            return {"kind": "function", "parameters": self._parameters(value), **about}
        kind = type(value)
        methods = [name for name in LENT if has_method(kind, f"__{name}__")]
        return {"kind": "object", "name": kind.__name__, "methods": methods, "hash": _hash_of(value)}

    def _parameters(self, function):
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return None
        empty = inspect.Parameter.empty
        return [[one.name, int(one.kind)] + ([] if one.default is empty else [self.pack(one.default)]) for one in parameters]

    def stand_in(self, number: int, about):
        known = self._stand_ins.get(number)
        if known is None:
            self.abouts[number] = about
            known = self._stand_ins[number] = self._class(number, about) if "bases" in about else self._object(number, about)
        return known

    def _class(self, number: int, about: dict) -> type:
        bases = [self._base(base) for base in about["bases"]]
        if any(issubclass(base, Exception) for base in bases):
            return _class(self, MirroredError, about["name"], tuple(one for one in bases if issubclass(one, Exception)), ERROR_METHODS, number)
        mirrored = [base for base in bases if isinstance(base, Mirrored)] or [Object]
        builtin = [base for base in bases if base in (*VALUES, *CONTAINERS) and not any(issubclass(one, base) for one in mirrored)]
        methods = _methods(self, about["methods"])
        for name in dir(builtin[0]) if builtin and builtin[0] in CONTAINERS else []:
            if not name.startswith("_"):
                methods[name] = property(lambda self, name=name: type(self)._peer.ask("get", self, name))
        kind = _class(self, Mirrored, about["name"], (*mirrored, *builtin[:1]), methods, number)
        for base in bases:
            if base.__module__ == "collections.abc":
                base.register(kind)
        return kind

    def _base(self, said) -> type:
        """A class that one of the code derives from, as far as its stand-in does, too."""
        if said[0] != "name":
            return self.unpack(said)
        module, _, name = str(said[1]).partition(":")
        if module == "collections.abc" and name in collections.abc.__all__:
            return getattr(collections.abc, name)
        found = look_up(said[1]) if self.may_look_up(said[1]) else None
        if found in (datetime.datetime, datetime.date, datetime.time) or (found in (*VALUES, *CONTAINERS)) or _is_exception(said[1]):
            return found
        return object

    def _object(self, number: int, about: dict):
        said = about["class"]
        kind = None if said[0] == "name" else self.unpack(said)
        if kind is None or "binds" in about:
            kind = self._plain_kind(said[1] if kind is None else f":{kind.__name__}", about.get("binds"))
        value = [self.unpack(about["value"])] if "value" in about else []
        base = next((one for one in VALUES if issubclass(kind, one)), None)
        if base is None:
            made = kind.__new__(kind)
        elif base in VALUES[5:]:
            made = base.__new__(kind, *MADE[base](value[0]))
        else:
            made = base.__new__(kind, *value)
        vars(made).update(_number=number, _value=value if base is not None else None, _text=str(about.get("text", "")))
        return made

    def _plain_kind(self, name: str, binds: bool | None) -> type:
        """For an object of a type of the standard library: a function, an iterator, a partial."""
        key = (name, binds)
        found = self._kinds.get(key)
        if found is None:
            names = ["call"] if binds is not None else self.ask("methods", name)
            methods = {**_methods(self, names), **({"__get__": _bound} if binds else {})}
            found = self._kinds[key] = _class(self, Mirrored, name.partition(":")[2], (Object,), methods, None)
        return found

    def exchange(self, what: str, arguments: list):
        kind, told = super().exchange(what, arguments)
        if self._unsaid is not None:
            failed, self._unsaid = self._unsaid, None
            raise failed
        return kind, told

    def raised(self, error: BaseException):
        if isinstance(error, Failed):
            raise error
        if _is_verdict(error):
            # Neither caught by the code, nor read: it says what was expected.
            self._unsaid = error
            return {"class": ["name", "builtins:AssertionError"], "arguments": []}
        if public_name(type(error)) is not None and isinstance(error, Exception):
            return {"class": self.pack(type(error)), "arguments": _plain_arguments(self, error)}
        if isinstance(type(error), MirroredError):
            return {"class": self.pack(type(error)), "arguments": _plain_arguments(self, error)}
        number = len(self.own) + 1
        self.own[number] = error
        base = next(one for one in type(error).__mro__ if public_name(one) is not None)
        return {"mine": number, "base": self.pack(base if issubclass(base, Exception) else Exception), "text": str(error)}

    def to_raise(self, told) -> BaseException:
        try:
            if "yours" in told:
                return self.own[told["yours"]]
            kind = self.unpack(told["class"])
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                return Failed("what the code raised is no exception")
            error = kind.__new__(kind, *[self.unpack(one) for one in told["arguments"]])
            error.args = tuple(self.unpack(one) for one in told["arguments"])
            if isinstance(kind, MirroredError):
                vars(error).update({str(name): self.unpack(one) for name, one in told["plain"].items()}, _text=str(told["text"]))
            return error
        except (KeyError, TypeError, AttributeError) as wrong:
            return Failed(f"what the code raised cannot be read: {wrong}")

    # What the code may ask of an object of the tests: to call it, and what its type has special methods for.
    def serve(self, what: str, arguments: list):
        value, *rest = arguments
        if id(value) not in self._numbers:
            raise Failed("asks of what it was not given")
        if what == "call" and callable(value):
            given, named = rest
            return value(*given, **named)
        if what == "method" and rest[0] in LENT and has_method(type(value), f"__{rest[0]}__"):
            name, given = rest
            return getattr(type(value), f"__{name}__")(value, *given)
        if isinstance(value, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
            raise AttributeError("an attribute of a function of the tests")
        name, *new = rest
        if not isinstance(name, str) or name.startswith("_") or not _is_open(type(value)):
            raise AttributeError(name)
        if what == "get":
            return getattr(value, name)
        if what == "set":
            return setattr(value, name, *new)
        if what == "delete":
            return delattr(value, name)
        raise Failed("asks for what there is not")


class Mirrored(type):
    """The type of classes that stand in for classes of the code."""

    def __call__(cls, *arguments, **named):
        return cls._peer.ask("call", cls, arguments, named)

    def __getattr__(cls, name):
        if name == "_number" or name == "_peer":
            raise AttributeError(name)
        return cls._peer.ask("get", cls, name)

    def __setattr__(cls, name, value):
        if name.startswith("__"):
            return type.__setattr__(cls, name, value)
        cls._peer.ask("set", cls, name, value)

    def __instancecheck__(cls, value):
        if type.__instancecheck__(cls, value):
            return True
        return isinstance(type(value), Mirrored) and "_number" in vars(cls) and cls._peer.ask("is_instance", value, cls)

    def __subclasscheck__(cls, kind):
        if type.__subclasscheck__(cls, kind):
            return True
        return isinstance(kind, Mirrored) and "_number" in vars(cls) and "_number" in vars(kind) and cls._peer.ask("is_subclass", kind, cls)

    def __new__(meta, name, bases, methods):
        if any(isinstance(base, Mirrored) for base in bases):
            raise TypeError("a class in another process has no subclasses here")
        return type.__new__(meta, name, bases, methods)

    def __init__(cls, *_):
        pass


class MirroredError(Mirrored):
    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind):
        return type.__subclasscheck__(cls, kind)


class Object(metaclass=Mirrored):
    """Stands in for an object of the code."""

    def __getattr__(self, name):
        if name in ("_number", "_value", "_peer"):
            raise AttributeError(name)
        return type(self)._peer.ask("get", self, name)

    def __setattr__(self, name, value):
        type(self)._peer.ask("set", self, name, value)

    def __delattr__(self, name):
        type(self)._peer.ask("delete", self, name)

    def __eq__(self, other):
        return _compared(self, "eq", other)

    def __ne__(self, other):
        same = _compared(self, "eq", other)
        return same if same is NotImplemented else not same

    def __hash__(self):
        return hash(self._value[0]) if self._value else hash(("of the code", self._number))

    def __copy__(self):
        return type(self)._peer.ask("method", self, "copy", [])

    def __deepcopy__(self, _):
        return type(self)._peer.ask("method", self, "deepcopy", [])

    def __reduce_ex__(self, _):
        raise TypeError("an object in another process cannot be pickled")

    def __dir__(self):
        return type(self)._peer.ask("method", self, "dir", [])


def _compared(mirrored: Object, name: str, other):
    """Here, with the plain value of the object; in its process only with another object of that process."""
    peer = type(mirrored)._peer
    if peer.number_of(other) is not None:
        return peer.ask("method", mirrored, name, [other])
    value = mirrored._value if mirrored._value is not None else peer.ask("value", mirrored)
    if not value or value[0] is NotImplemented:
        return NotImplemented
    return getattr(operator, name)(value[0], other)


def _methods(peer: Tests, names: list) -> dict:
    methods = {}
    for name in names:
        if name not in FORWARDED or name == "eq":
            continue
        methods[f"__{name}__"] = _comparing(name) if name in COMPARED else _exit(peer) if name == "exit" else _forward(peer, name)
    if "getitem" in names and "iter" not in names and "len" in names:
        methods["__iter__"] = lambda self: (self[i] for i in range(len(self)))
    return methods


def _comparing(name: str):
    return lambda self, other: _compared(self, name, other)


def _forward(peer: Tests, name: str):
    def method(self, *arguments, **named):
        if name == "call":
            return peer.ask("call", self, arguments, named)
        return peer.ask("method", self, name, list(arguments))

    return method


def _exit(peer: Tests):
    def method(self, kind, error, trace):
        is_caught = peer.ask("method", self, "exit", [kind, None if _is_verdict(error) else error, None])
        return is_caught and not _is_verdict(error)

    return method


def _is_verdict(error: BaseException | None) -> bool:
    """What a test says by it: that something is not so, or that it is to be skipped or ended."""
    return isinstance(error, AssertionError) or isinstance(error, BaseException) and not isinstance(error, Exception)


def _bound(self, instance, owner=None):
    return self if instance is None else types.MethodType(self, instance)


def _class(peer: Tests, meta: type, name: str, bases: tuple, methods: dict, number: int | None) -> type:
    return type.__new__(meta, name, bases, {"__doc__": DOCUMENTED, **methods, "_peer": peer, "_number": number})


DOCUMENTED = property(lambda self: type(self)._peer.ask("get", self, "__doc__"))


def _error_attribute(self, name):
    number = vars(self).get("_number")
    if number is None:
        raise AttributeError(name)
    return type(self)._peer.ask("get", self, name)


ERROR_METHODS = {"__str__": lambda self: vars(self).get("_text", ""), "__getattr__": _error_attribute}


class Module(types.ModuleType):
    """A module of the code."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__all__", "__version__", "__author__"):
            raise AttributeError(name)
        return vars(self)["_peer"].ask("of_module", self.__name__, name)

    def __setattr__(self, name, value):
        if name.startswith("__") or isinstance(value, types.ModuleType):
            return super().__setattr__(name, value)
        vars(self)["_peer"].ask("set_in_module", self.__name__, name, value)


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of the code as stand-ins. What lies in folders of tests is none of it."""

    def __init__(self, peer: Tests, root: str, source_roots: list, sources: list, tests: list) -> None:
        self._peer, self._root, self._source_roots, self._tests = peer, root, source_roots, tests
        self._names = {name for name in (self._name(path) for path in sources) if name}

    def _name(self, path: str) -> str | None:
        for root in sorted(self._source_roots, key=len, reverse=True):
            if root == "" or path.startswith(root + "/"):
                return path[len(root) + 1 if root else 0 :].split("/")[0].removesuffix(".py")
        return None

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self._names or self._is_test(name):
            return None
        try:
            is_package = self._peer.ask("import", name)
        except ModuleNotFoundError:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=is_package is True)
        if is_package is True:
            spec.submodule_search_locations = [self._file(name)]
        return spec

    def _file(self, name: str) -> str:
        folders = [os.path.join(self._root, root, *name.split(".")) for root in self._source_roots]
        return next((folder for folder in folders if os.path.exists(folder)), folders[0])

    def _is_test(self, name: str) -> bool:
        file = self._file(name)
        return any(file == place or file.startswith(place + os.sep) for place in (os.path.join(self._root, one) for one in self._tests))

    def create_module(self, spec):
        module = Module(spec.name)
        vars(module)["_peer"] = self._peer
        vars(module)["__file__"] = os.path.join(self._file(spec.name), "__init__.py") if spec.submodule_search_locations else self._file(spec.name) + ".py"
        return module

    def exec_module(self, module) -> None:
        pass


def _is_of_tests(value) -> bool:
    """What knows the tests themselves: no code under test is given it."""
    kinds = [kind.__module__.split(".")[0] for kind in type(value).__mro__]
    return "_pytest" in kinds or "pytest" in kinds or "unittest" in kinds and "unittest.mock" not in type(value).__module__


def _is_open(kind: type) -> bool:
    """Whether the code may read attributes of an object of the tests: of classes that the tests have made, by their plain names."""
    return kind is functools.partial or not is_standard(kind.__module__)


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name.removeprefix("builtins:"), None) if name.startswith("builtins:") else None
    return isinstance(kind, type) and issubclass(kind, Exception)


def _plain_arguments(peer: Tests, error: Exception) -> list:
    return [peer.pack(one) for one in error.args]


def _text(value):
    return value if isinstance(value, str) else None


def _hash_of(value):
    try:
        return hash(value)
    except Exception:
        return None
