"""Tests that must fail.

A canary is a test that asks for what cannot be: in place of an expected value it compares with a fresh object, and what
it asserted it asserts to be false. Of honest code it fails. Where it passes, something other than the code under test
decides what tests say: a comparison that is always true, a patched test runner, a forged report.
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


def canary(source: str) -> str:
    """The test module `source` with every assertion turned into one that honest code fails."""
    tree = _Turn().visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree))


def _expression(text: str, **parts: ast.expr) -> ast.expr:
    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    return Put().visit(ast.parse(text, mode="eval").body)


def _unequal(left: ast.expr, right: ast.expr) -> ast.expr:
    # Either side may be the code's, and either one may claim to equal everything.
    return _expression("left == object() or object() == right", left=left, right=right)


class _Turn(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            return ast.Assert(_unequal(test.left, test.comparators[0]), None)
        return ast.Assert(ast.UnaryOp(ast.Not(), test), None)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("assertEqual", "assertEquals") and len(node.args) >= 2 and isinstance(function, ast.Attribute):
            function.attr = "assertTrue"
            return ast.Call(function, [_unequal(node.args[0], node.args[1])], [])
        if name in OPPOSITE and isinstance(function, ast.Attribute):
            function.attr = OPPOSITE[name]
        elif name in RAISES and node.args:
            node.args[0] = _expression("type('Nothing', (Warning,), {})")
        return node
