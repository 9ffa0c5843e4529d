"""What a change reaches for beyond the code that it mends.

Tests and the code under test share an interpreter, so code that takes hold of the interpreter can make a test say what
it likes. A mend has no need to: whatever a changed file does with imports, special methods, frames, the names below or
what other modules own must have stood in that very place before, in the same expression. The rest is refused, unrun.
"""

import ast
import importlib
from collections import Counter
from types import ModuleType

SAFE_MODULES = frozenset(
    "__future__ bisect collections collections.abc datetime decimal fractions functools heapq html itertools math operator "
    "re string textwrap typing unicodedata urllib urllib.parse".split()
)
# As a name, as an attribute, and as what is imported from a module. Among them what reads, sets or runs by a text that can
# be put together (getattr and its like), and what makes classes with methods of any name.
REACHING_NAMES = frozenset(
    "eval exec compile open input breakpoint exit quit globals locals vars getattr setattr delattr memoryview "
    "SystemExit KeyboardInterrupt GeneratorExit BaseException BaseExceptionGroup attrgetter methodcaller "
    "get_field get_value vformat Formatter get_type_hints ForwardRef update_wrapper wraps cached_property import_module "
    "make_dataclass ABCMeta EnumMeta EnumType Enum global_enum".split()
)
REACHING_ATTRIBUTES = REACHING_NAMES | frozenset(
    "gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code ag_await tb_frame tb_next f_back f_globals "
    "f_locals f_builtins f_code co_code co_consts with_traceback modules sys os gc io inspect importlib builtins bltns types "
    "signal threading subprocess ctypes atexit unittest pytest mock weakref logging warnings linecache codecs copyreg "
    "_getframe _getframemodulename _current_frames _exit _sys _os _io _thread _builtins".split()
)
PLAIN_SPECIAL_METHODS = frozenset(
    "__init__ __repr__ __str__ __len__ __iter__ __next__ __enter__ __exit__ __call__ __getitem__ __setitem__ __delitem__ "
    "__contains__ __missing__".split()
)
# What equals everything passes every test: these stay letter by letter as they were.
COMPARING_METHODS = frozenset("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __getattribute__ __instancecheck__".split())
LONGEST_FINDING = 300


def findings(before: str, after: str) -> list[str]:
    """What `after` reaches for and `before` did not, in words; empty where there is nothing to object to."""
    try:
        new = ast.parse(after)
        old = ast.parse(before) if before else ast.Module([], [])
        known = _private_names(old)
        unheard = _Reach(new, known).seen - _Reach(old, known).seen
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"cannot be parsed: {type(error).__name__}"]
    return sorted(finding[:LONGEST_FINDING] for finding in unheard)


def _private_names(tree: ast.Module) -> frozenset[str]:
    """Attributes with a leading underscore that a module has or asks for."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    definitions = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return frozenset(name for name in attributes | definitions if name.startswith("_"))


def _public(module: str) -> frozenset[str]:
    """What a safe module has to offer; not what it has itself imported, such as `sys` in `typing`."""
    values = vars(importlib.import_module(module))
    names = values.get("__all__") or [name for name in values if not name.startswith("_")]
    return frozenset(name for name in names if not _is_foreign(values.get(name))) | {"*"}


def _is_foreign(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__ not in SAFE_MODULES


# By the names of those that are safe one gets at others: `enum.bltns`, `typing.sys`.
FOREIGN_MODULES = frozenset(
    name for module in SAFE_MODULES for name, value in vars(importlib.import_module(module)).items() if _is_foreign(value)
)


class _Reach(ast.NodeVisitor):
    """Counts what a module reaches for, each with the expression and the place (the function or class) where it does."""

    def __init__(self, tree: ast.Module, known: frozenset[str]) -> None:
        self.seen: Counter[str] = Counter()
        self.known = known
        self.place: list[str] = []
        self.around: list[ast.AST] = []
        self.imported: set[str] = set()
        self.reaching: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._note_import(node)
        self.visit(tree)

    def _note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        whole = isinstance(node, ast.Import)
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            self.imported.add(name)
            if alias.name not in SAFE_MODULES if whole else self._is_reaching_import(node, alias.name):
                self.reaching.add(name)

    def _is_reaching_import(self, node: ast.ImportFrom, name: str) -> bool:
        if name in REACHING_ATTRIBUTES or name in FOREIGN_MODULES:
            return True
        if node.level > 0:
            return name.startswith("_") and name not in self.known
        return node.module not in SAFE_MODULES or name not in _public(node.module)

    def visit(self, node: ast.AST) -> None:
        self.around.append(node)
        super().visit(node)
        self.around.pop()

    def _say(self, what: str) -> None:
        self.seen[f"{what} in {'.'.join(self.place) or 'the module'}"] += 1

    def _say_use(self, of: str) -> None:
        """With all of the expression that does something with it: what may be called is called with the same."""
        whole = self.around[-1]
        for node in reversed(self.around[:-1]):
            if not isinstance(node, (ast.Attribute, ast.Call, ast.Subscript, ast.Starred, ast.keyword)):
                break
            whole = node
        text = ast.unparse(whole) if isinstance(whole, ast.expr) else of
        self._say(f"use of {of}" if text == of else f"use of {of}, as {text}")

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        if node.name.startswith("__") and node.name not in PLAIN_SPECIAL_METHODS:
            text = f", as {ast.unparse(node)}" if node.name in COMPARING_METHODS else ""
            self._say(f"definition of {node.name}{text}")
        self.place.append(node.name)
        for field, value in ast.iter_fields(node):
            if field != "decorator_list":
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.visit(child)
        self.place.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in SAFE_MODULES:
                self._say(f"import of {alias.name} as {alias.asname or alias.name}")
            self._binds(alias.asname)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if self._is_reaching_import(node, alias.name):
                self._say(f"import of {alias.name} from {source} as {alias.asname or alias.name}")
            self._binds(alias.asname)

    def _binds(self, name: str | None) -> None:
        if name is not None and (name.startswith("__") or name in REACHING_NAMES):
            self._say(f"binding of {name}")

    def visit_arg(self, node: ast.arg) -> None:
        self._binds(node.arg)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self._binds(name)

    visit_Nonlocal = visit_Global

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in REACHING_NAMES or node.id in self.reaching or node.id.startswith("__"):
            self._say_use(node.id)
        elif node.id == "type" and not self._asks_for_type(node):
            self._say_use("type, but to ask for one")

    def _asks_for_type(self, node: ast.Name) -> bool:
        """`type(x)` and `is type`; elsewhere it makes classes with methods of any name."""
        outside = self.around[-2]
        if isinstance(outside, ast.Call) and outside.func is node:
            return len(outside.args) == 1 and not outside.keywords and not isinstance(outside.args[0], ast.Starred)
        return isinstance(outside, ast.Compare)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._is_reaching_attribute(node.attr) and ast.unparse(node) != "re.compile":
            self._say_use(f".{node.attr}")
        if not isinstance(node.ctx, ast.Load) and _root(node) in self.imported:
            self._say(f"change of {ast.unparse(node)}, which another module owns")
        self.generic_visit(node)

    def _is_reaching_attribute(self, name: str) -> bool:
        return (
            (name.startswith("__") and name.endswith("__"))
            or name in REACHING_ATTRIBUTES
            or name in FOREIGN_MODULES
            or (name.startswith("_") and name not in self.known)
        )

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        # `case object(f_back=frame)` asks for an attribute, too.
        for name in node.kwd_attrs:
            if self._is_reaching_attribute(name):
                self._say(f"use of .{name} in a pattern")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and _root(node) in self.imported:
            self._say(f"change of {ast.unparse(node)}, which another module owns")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and ("__" in node.value or node.value in REACHING_ATTRIBUTES):
            self._say(f"the text {node.value!r}")


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
