"""Tests that must fail.

A canary is a test that asks for what cannot be: what it asserted it asserts to be false, and in place of an expected
value it compares with another one of the same kind, so that what equals everything cannot tell which is which. Of honest
code it fails. Where it passes, something other than the code under test decides what tests say: a comparison that is
always true, a patched test runner, a forged report.
"""

import ast

OPPOSITE = {
    "assertTrue": "assertFalse",
    "assertFalse": "assertTrue",
    "assertIn": "assertNotIn",
    "assertNotIn": "assertIn",
    "assertIs": "assertIsNot",
    "assertIsNot": "assertIs",
    "assertIsNone": "assertIsNotNone",
    "assertIsNotNone": "assertIsNone",
    "assertIsInstance": "assertNotIsInstance",
    "assertNotIsInstance": "assertIsInstance",
    "assertNotEqual": "assertEqual",
}
RAISES = frozenset(["raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns"])

# Stands at the head of tests and canaries alike. Either side may be the code's, and either one may claim to equal everything.
UNLIKE = """
def {name}(left, right):
    def other(value):
        kind = type(value)
        if kind is bool:
            return not value
        if kind in (int, float, complex):
            return value + 1
        if kind is dict:
            return dict(value, other=None)
        if kind in (set, frozenset):
            return value | kind(['other'])
        for more in ('~', b'~', [None], (None,)):
            if kind is type(more):
                return value + more
        return object()
    return left == other(right) or other(left) == right
"""


def canary(source: str, name: str) -> str:
    """The test module `source` with every assertion turned into one that honest code fails; `name` is used nowhere else."""
    tree = _Turn(name).visit(ast.parse(source))
    return _written(tree, name)


def test(source: str, name: str) -> str:
    """The test module `source` as it is, but for what would tell it from a canary at a glance: its layout and comments."""
    return _written(ast.parse(source), name)


def _written(tree: ast.Module, name: str) -> str:
    # Behind the docstring and what is imported from __future__, which have to come first.
    first = 0
    for first, statement in enumerate([*tree.body, ast.Pass()]):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and getattr(statement, "module", None) != "__future__":
            break
    tree.body[first:first] = ast.parse(UNLIKE.format(name=name)).body
    return ast.unparse(ast.fix_missing_locations(tree))


class _Turn(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def _unequal(self, left: ast.expr, right: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(self.name, ast.Load()), [left, right], [])

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            return ast.Assert(self._unequal(test.left, test.comparators[0]), None)
        return ast.Assert(ast.UnaryOp(ast.Not(), test), None)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("assertEqual", "assertEquals") and len(node.args) >= 2 and isinstance(function, ast.Attribute):
            function.attr = "assertTrue"
            return ast.Call(function, [self._unequal(node.args[0], node.args[1])], [])
        if name in OPPOSITE and isinstance(function, ast.Attribute):
            function.attr = OPPOSITE[name]
        elif name in RAISES and node.args:
            nothing = ast.parse("type('Nothing', (Warning,), {})", mode="eval").body
            node.args[0] = nothing
        return node
