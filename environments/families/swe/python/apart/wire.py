"""Values and handles between two processes, in lines of JSON: the tests in one, the code under test in the other.

Plain values go by value; everything else stays where it is, and the other side has a handle to it. No pickles, and no
name is looked up but of what the standard library offers to everybody.
"""

import base64
import collections
import datetime
import decimal
import fractions
import importlib
import json
import sys
import types

LONGEST_LINE = 16 << 20
SCALARS = (bool, int, float, str, bytes, complex)

# Special methods that an object's stand-in has where its type has them.
FORWARDED = frozenset((
    "call len iter next getitem setitem delitem contains bool int float index complex bytes str repr format abs neg pos invert "
    "round reversed enter exit get set set_name add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv "
    "rfloordiv ifloordiv mod rmod imod pow rpow ipow or ror ior and rand iand xor rxor ixor lshift rshift matmul divmod rdivmod "
    "lt le gt ge eq"
).split())
# How a value is taken apart into what its type makes it from again.
MADE = {
    bytes: lambda v: [base64.b85encode(v).decode()],
    complex: lambda v: [v.real, v.imag],
    list: list,
    tuple: list,
    set: list,
    frozenset: list,
    dict: lambda v: [[key, value] for key, value in v.items()],
    collections.OrderedDict: lambda v: [[key, value] for key, value in v.items()],
    collections.deque: lambda v: [list(v), v.maxlen],
    range: lambda v: [v.start, v.stop, v.step],
    slice: lambda v: [v.start, v.stop, v.step],
    decimal.Decimal: lambda v: [str(v)],
    fractions.Fraction: lambda v: [v.numerator, v.denominator],
    datetime.date: lambda v: [v.year, v.month, v.day],
    datetime.time: lambda v: [v.hour, v.minute, v.second, v.microsecond, v.tzinfo],
    datetime.datetime: lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo],
    datetime.timedelta: lambda v: [v.days, v.seconds, v.microseconds],
    datetime.timezone: lambda v: [v.utcoffset(None), v.tzname(None)],
}
WHOLE = (list, tuple, set, frozenset)
PAIRS = (dict, collections.OrderedDict)
MAKERS = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in MADE}


class Failed(BaseException):
    """The other side is gone, or says what no honest side would. No test catches it for an exception that it expects."""


class Unknown(Failed):
    """A value that the other side must not name, or that is none."""


class Peer:
    """One end of the line. Subclasses say what is shown of an own object, and what stands for one of the other side."""

    def __init__(self, read, write) -> None:
        self._read, self._write = read, write
        self.own: dict = {}
        self._over = False
        self._numbers: dict = {}

    # What subclasses define.
    def describe(self, value):
        """What the other side has to know of an object of this one."""
        raise NotImplementedError

    def stand_in(self, number: int, about):
        """What is used here in place of an object of the other side."""
        raise NotImplementedError

    def number_of(self, value):
        """The number of the object that `value` stands in for; None for an own one."""
        raise NotImplementedError

    def may_look_up(self, name: str) -> bool:
        """Whether a name of the standard library that the other side says is looked up."""
        raise NotImplementedError

    def serve(self, what: str, arguments: list):
        raise NotImplementedError

    def raised(self, error: BaseException):
        """An exception as it is told."""
        raise NotImplementedError

    def to_raise(self, told) -> BaseException:
        raise NotImplementedError

    # Lines.
    def ask(self, what: str, *arguments):
        kind, told = self.exchange(what, [self.pack(one) for one in arguments])
        if kind == "said":
            return self.unpack(told)
        raise self.to_raise(told)

    def exchange(self, what: str, arguments: list):
        """Asks in packed values, and answers until it is answered: whether something is said or raised, and what."""
        self._send(["ask", what, arguments])
        while True:
            kind, *rest = self._receive()
            if kind == "ask":
                self._send(self.answer(*rest))
            elif kind in ("said", "raised"):
                return kind, rest[0]
            else:
                raise Failed("an unknown line")

    def listen(self) -> None:
        while True:
            try:
                kind, *rest = self._receive()
            except Failed:
                return
            if kind == "ask":
                self._send(self.answer(*rest))

    def answer(self, what: str, arguments: list) -> list:
        try:
            return ["said", self.pack(self.serve(what, [self.unpack(one) for one in arguments]))]
        except Unknown as unknown:
            return ["raised", self.raised(TypeError(str(unknown)))]
        except Failed:
            raise
        except BaseException as error:
            return ["raised", self.raised(error)]

    def _send(self, line: list) -> None:
        if self._over:
            raise Failed("the other side is gone")
        try:
            self._write.write(json.dumps(line).encode() + b"\n")
            self._write.flush()
        except OSError:
            raise Failed("the other side is gone") from None

    def _receive(self) -> list:
        line = self._read.readline(LONGEST_LINE)
        try:
            said = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, list) and len(said) >= 2:
            return said
        self._over = True
        raise Failed("the other side is gone, or says what cannot be read")

    # Values.
    def pack(self, value):
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in MADE:
            return ["made", f"{kind.__module__}.{kind.__qualname__}", [self.pack(one) for one in MADE[kind](value)]]
        number = self.number_of(value)
        if number is not None:
            return ["yours", number]
        name = public_name(value)
        if name is not None:
            return ["name", name]
        number = self._numbers.get(id(value))
        if number is None:
            about = self.describe(value)
            number = self._numbers[id(value)] = len(self.own) + 1
            self.own[number] = value
            return ["mine", number, about]
        return ["mine", number, None]

    def unpack(self, said):
        if not isinstance(said, list):
            if isinstance(said, dict):
                raise Unknown("an unknown value")
            return said
        try:
            tag, rest = said[0], said[1:]
            if tag == "made":
                return _make(MAKERS[rest[0]], [self.unpack(one) for one in rest[1]])
            if tag == "yours":
                return self.own[rest[0]]
            if tag == "mine":
                return self.stand_in(rest[0], rest[1])
            if tag == "name" and self.may_look_up(rest[0]):
                return look_up(rest[0])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ImportError) as error:
            raise Unknown(f"an unknown value: {error}") from None
        raise Unknown("an unknown value")


def _make(kind: type, parts: list):
    if kind in WHOLE:
        return kind(parts)
    if kind in PAIRS:
        return kind((key, value) for key, value in parts)
    if kind is bytes:
        return base64.b85decode(parts[0])
    return kind(*parts)


def public_name(value) -> str | None:
    """The name of a class or function of the standard library, or of one of its modules: both sides have the same."""
    if isinstance(value, types.ModuleType):
        return f"{value.__name__}:" if is_standard(value.__name__) else None
    if value is NotImplemented or value is Ellipsis:
        return f"builtins:{value}"
    if not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not is_standard(module):
        return None
    try:
        return f"{module}:{name}" if look_up(f"{module}:{name}") is value else None
    except (AttributeError, ImportError):
        return None


def is_standard(module: str) -> bool:
    return module.split(".")[0] in sys.stdlib_module_names and module != "__main__"


def look_up(name: str):
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split(".") if path else []:
        found = getattr(found, part)
    return found


BARE = (object, type, BaseException, Exception)


def has_method(kind: type, name: str) -> bool:
    method = getattr(kind, name, None)
    if method is None:
        return False
    return all(getattr(bare, name, None) is not method for bare in BARE)
