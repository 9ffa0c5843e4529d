"""One-token bugs in functions of a Python module. stdin: its source; stdout: a list of {line, column, function, old, new} as JSON.

The tokens are those whose exchange is a bug that people make: a comparison or an operator turned round, `and` for `or`,
a number that is one too large, True for False, a `not` too few. `line` counts from 1, `column` from 0; `function` has the
names of the classes and functions around it.
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
    lines = source.splitlines(keepends=True)
    return [mutant for name, node in functions_of(ast.parse(source), ()) for mutant in mutants_of(name, node, lines)]


def functions_of(node: ast.AST, around: tuple[str, ...]):
    """Functions that are in no other function, each with its name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ".".join([*around, child.name]), child
        else:
            yield from functions_of(child, (*around, child.name) if isinstance(child, ast.ClassDef) else around)


def mutants_of(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]):
    # An indented function is parsed below a line of its own, which the rows of tokens count.
    head = "if True:\n" if function.col_offset > 0 else ""
    own = lines[function.lineno - 1 : function.end_lineno]
    before = _parsed(head + "".join(own))
    if before is None:
        return
    operators = exchangeable(before)
    for token in tokenize.generate_tokens(io.StringIO(head + "".join(own)).readline):
        row, column = token.start[0] - (1 if head else 0), token.start[1]
        new = OPERATORS.get(token.string) if token.type in (tokenize.OP, tokenize.NAME) else None
        if token.type == tokenize.NUMBER and token.string.isdigit() and len(token.string) < 4:
            new = str(int(token.string) + 1)
        if new is None or function.lineno + row - 1 < function.body[0].lineno:
            continue
        line = own[row - 1]
        changed = line[:column] + new + line[column + len(token.string) :]
        after = _parsed(head + "".join([*own[: row - 1], changed, *own[row:]]))
        # What means the same, or is no Python, is no bug. Tokens that are no operators (`*args`, `for x in`) are told by the tree.
        if after is None or ast.dump(after) == ast.dump(before):
            continue
        now = exchangeable(after)
        if token.type != tokenize.NUMBER and (now == operators or (len(now) != len(operators) and token.string != "not")):
            continue
        yield dict(line=function.lineno + row - 1, column=column, function=name, old=token.string, new=new)


def exchangeable(tree: ast.Module) -> list[str]:
    """The operators and constants of a tree in order, each with its place in that order."""
    kinds = (ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
    nodes = [n for n in ast.walk(tree) if isinstance(n, kinds) or (isinstance(n, ast.Constant) and isinstance(n.value, bool))]
    return [f"{i} {ast.dump(n)}" for i, n in enumerate(nodes)]


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


if __name__ == "__main__":
    print(json.dumps(mutants(sys.stdin.read())))
