"""One-token bugs in functions of a Python module. stdin: {source} as JSON; stdout: a list of {line, function, old, new, source}.

The tokens are those whose exchange is a bug that people make: a comparison or an operator turned round, `and` for `or`,
a number that is one too large, True for False, a `not` too few. `line` counts from 1.
"""

import ast
import io
import json
import sys
import tokenize

OPERATORS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "*": "+", "//": "*", "%": "//",
    "+=": "-=", "-=": "+=", "and": "or", "or": "and", "is": "is not", "True": "False", "False": "True", "not": "", "in": "not in",
}  # fmt: skip


def mutants(source: str) -> list[dict]:
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    operators = exchangeable(tree)
    lines = source.splitlines(keepends=True)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        inside = [f for f in functions if f.body[0].lineno <= row <= (f.end_lineno or 0)]
        if not inside:
            continue
        new = OPERATORS.get(token.string) if token.type in (tokenize.OP, tokenize.NAME) else None
        if token.type == tokenize.NUMBER and token.string.isdigit() and len(token.string) < 4:
            new = str(int(token.string) + 1)
        if new is None:
            continue
        line = lines[row - 1]
        changed = line[:column] + new + line[column + len(token.string) :]
        mutant = "".join([*lines[: row - 1], changed, *lines[row:]])
        # What means the same, or is no Python, is no bug. Tokens that are no operators (`*args`, `for x in`) are told by the tree.
        try:
            after = ast.parse(mutant)
        except SyntaxError:
            continue
        now = exchangeable(after)
        if token.type != tokenize.NUMBER and (now == operators or (len(now) != len(operators) and token.string != "not")):
            continue
        if ast.dump(after) == ast.dump(tree):
            continue
        innermost = max(inside, key=lambda f: f.lineno)
        found.append(dict(line=row, function=innermost.name, old=token.string, new=new, source=mutant))
    return found


def exchangeable(tree: ast.Module) -> list[str]:
    """The operators and constants of a tree in order, each with its place in that order."""
    kinds = (ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
    nodes = [n for n in ast.walk(tree) if isinstance(n, kinds) or (isinstance(n, ast.Constant) and isinstance(n.value, bool))]
    return [f"{i} {ast.dump(n)}" for i, n in enumerate(nodes)]


if __name__ == "__main__":
    print(json.dumps(mutants(json.load(sys.stdin)["source"])))
