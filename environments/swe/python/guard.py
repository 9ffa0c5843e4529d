"""What a change reaches for beyond the code that it mends.

Tests and the code under test share an interpreter, so code that takes hold of the interpreter can make a test say what
it likes. A mend has no need to: whatever a changed file does with imports, special methods, frames, the names below or
what other modules own must have stood in that very place before. The rest is refused, unrun.
"""

import ast
from collections import Counter

SAFE_MODULES = frozenset(
    "__future__ abc bisect collections collections.abc copy dataclasses datetime decimal enum fractions functools heapq html "
    "itertools math numbers operator re statistics string textwrap typing unicodedata urllib urllib.parse".split()
)
REACHING_NAMES = frozenset(
    "eval exec compile open input breakpoint exit quit globals locals vars getattr setattr delattr memoryview "
    "SystemExit KeyboardInterrupt GeneratorExit BaseException BaseExceptionGroup attrgetter methodcaller".split()
)
REACHING_ATTRIBUTES = frozenset(
    "attrgetter methodcaller gi_frame gi_code cr_frame cr_code ag_frame ag_code tb_frame tb_next f_back f_globals f_locals "
    "f_builtins f_code co_code co_consts with_traceback modules sys os gc io inspect importlib builtins types signal threading "
    "subprocess ctypes atexit unittest pytest mock weakref logging warnings".split()
)
PLAIN_SPECIAL_METHODS = frozenset(
    "__init__ __repr__ __str__ __len__ __iter__ __next__ __enter__ __exit__ __call__ __getitem__ __setitem__ __delitem__ "
    "__contains__ __missing__".split()
)


def findings(before: str, after: str) -> list[str]:
    """What `after` reaches for and `before` did not, in words; empty where there is nothing to object to."""
    try:
        new = _Reach(ast.parse(after)).seen
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"cannot be parsed: {type(error).__name__}"]
    return sorted((new - _Reach(ast.parse(before) if before else ast.Module([], [])).seen).keys())


class _Reach(ast.NodeVisitor):
    """Counts what a module reaches for, each with the place (the function or class) where it does."""

    def __init__(self, tree: ast.Module) -> None:
        self.seen: Counter[str] = Counter()
        self.place: list[str] = []
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
            source = alias.name if whole else ("." * node.level + (node.module or ""))
            self.imported.add(name)
            if source not in SAFE_MODULES and not source.startswith("."):
                self.reaching.add(name)

    def _say(self, what: str) -> None:
        self.seen[f"{what} in {'.'.join(self.place) or 'the module'}"] += 1

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        if node.name.startswith("__") and node.name not in PLAIN_SPECIAL_METHODS:
            self._say(f"definition of {node.name}")
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
                self._say(f"import of {alias.name}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if (source not in SAFE_MODULES and node.level == 0) or alias.name in REACHING_NAMES:
                self._say(f"import of {alias.name} from {source}")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in REACHING_NAMES or node.id in self.reaching or node.id.startswith("__"):
            self._say(f"use of {node.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith("__") or node.attr in REACHING_ATTRIBUTES:
            self._say(f"use of .{node.attr}")
        if not isinstance(node.ctx, ast.Load) and _root(node) in self.imported:
            self._say(f"change of {ast.unparse(node)}, which another module owns")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and _root(node) in self.imported:
            self._say(f"change of {ast.unparse(node)}, which another module owns")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) > 1:
            self._say("making of a class by type()")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and ("__" in node.value or node.value in REACHING_ATTRIBUTES):
            self._say(f"the text {node.value[:40]!r}")


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
