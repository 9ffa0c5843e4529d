"""The calculator's tool and reward (environments/families/calculator, environments/verifiers) for a trainer in Python.

`trl_grpo.py` is asked, before anything is timed, whether they say of episodes that were played what ours said.
"""

import ast
import json
import re
import unicodedata

LIMIT = 10**15
HINT = "write two numbers, like 12+7"
SPECIAL = re.compile(r"<\|(?:pad|im_start|im_end)\|>|</?(?:think|tool_call|tool_response|answer)>")
NUMBER = re.compile(r"^([+-]?)(\d{1,3}(?:([,'_ ])\d{3}(?:\3\d{3})*)|\d+)?(?:\.(\d*))?$")
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Refusal(Exception):
    """Told to the policy."""


def calculator(expression: str) -> str:
    """Does one exact operation on two whole numbers, like 12+7.

    Args:
        expression: Two whole numbers and one of + - * / between them, like 12+7
    """
    try:
        return str(_one_operation(expression))
    except Refusal as refusal:
        return f"error: {refusal}"


def _one_operation(expression: str) -> int:
    if not isinstance(expression, str):
        raise Refusal("arguments expression: Invalid input")
    if len(expression) > 100:
        raise Refusal("too long: one operation at a time, like 12+7")
    try:
        # Python refuses zeros in front of a number.
        tree = ast.parse(re.sub(r"\b0+(?=\d)", "", expression.strip()), mode="eval").body
    except (SyntaxError, ValueError):
        raise Refusal(f"cannot read it: {HINT}") from None
    return _apply(tree)


def _apply(tree: ast.expr) -> int:
    if not isinstance(tree, ast.BinOp):
        _operand(tree)
        raise Refusal(f"no operation: {HINT}")
    sign = SIGNS.get(type(tree.op))
    if sign is None:
        raise Refusal("only + - * / and two numbers, like 12+7")
    left, right = _operand(tree.left), _operand(tree.right)
    if sign == "/":
        if right == 0:
            raise Refusal("division by zero")
        if left % right:
            raise Refusal(f"{left}/{right} is not a whole number")
        return left // right
    return _within(left + right if sign == "+" else left - right if sign == "-" else left * right)


def _operand(tree: ast.expr) -> int:
    if isinstance(tree, ast.BinOp):
        raise Refusal("one operation at a time, like 12+7")
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_operand(tree.operand)
    if not isinstance(tree, ast.Constant):
        raise Refusal("only + - * / and two numbers, like 12+7")
    if type(tree.value) is not int:
        raise Refusal("whole numbers only, like 12+7")
    return _within(tree.value)


def _within(value: int) -> int:
    if abs(value) > LIMIT:
        raise Refusal("number too large")
    return value


def turns_of(completion: str) -> list[str]:
    """What the policy wrote, without the results of tools between."""
    return [text for text in re.split(r"<tool_response>.*?</tool_response>", completion, flags=re.S) if text]


def reward_of(written: list[str], expected: str) -> float:
    """exact-match + 0.05 format where that is right - 0.2 (1 - tool-shaping), as examples/calculator.json has it."""
    turns = [read_turn(text) for text in written]
    kind, said = turns[-1] if turns else ("none", None)
    answer = said if kind == "answer" else None
    right = answer is not None and normalize(answer) == normalize(expected)
    malformed = sum(kind == "malformed" for kind, _ in turns)
    counted = len(turns) + (answer is None)
    tidy = (len(turns) - malformed) / counted if counted else 0
    calls = [json.dumps(call, sort_keys=True) for kind, call in turns if kind == "call"]
    unknown = sum(call["name"] != "calculator" for kind, call in turns if kind == "call")
    penalty = min(0.5, 0.1 * (len(calls) - len(set(calls))) + 0.2 * unknown + 0.2 * malformed)
    return right * (1 + 0.05 * tidy) - 0.2 * penalty


def read_turn(text: str) -> tuple[str, object]:
    """A turn as engine/dialect/gradus/parse-action.ts reads it: a call, an answer, or malformed."""
    body = text.strip()
    ended = body.endswith("<|im_end|>")
    body = body.removesuffix("<|im_end|>").strip()
    if thought := re.match(r"<think>(.*?)</think>", body, re.S):
        if SPECIAL.search(thought[1]):
            return "malformed", None
        body = body[thought.end() :].strip()
    if said := re.fullmatch(r"<answer>(.*?)</answer>", body, re.S):
        good = said[1].strip() and not SPECIAL.search(said[1])
        return ("answer", said[1]) if good else ("malformed", None)
    call = re.fullmatch(r"<tool_call>(.*?)</tool_call>", body, re.S)
    if ended or not call or SPECIAL.search(call[1]):
        return "malformed", None
    try:
        asked = json.loads(call[1])
    except ValueError:
        return "malformed", None
    good = (
        isinstance(asked, dict)
        and set(asked) == {"name", "arguments"}
        and isinstance(asked["name"], str)
        and asked["name"]
        and isinstance(asked["arguments"], dict)
    )
    return ("call", asked) if good else ("malformed", None)


def normalize(answer: str) -> str:
    """environments/verifiers/exact-match.ts"""
    text = unicodedata.normalize("NFKC", answer)
    text = re.sub(r"\s+", " ", re.sub("[\u2212\u2010-\u2015\ufe63\uff0d]", "-", text)).strip()
    match = NUMBER.match(re.sub(r"^([+-]) ", r"\1", text))
    if match is None or (match[2] is None and not match[4]):
        return text
    whole = re.sub(r"^0+(?=\d)", "", re.sub(r"\D", "", match[2] or "")) or "0"
    fraction = (match[4] or "").rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return f"-{value}" if match[1] == "-" and value != "0" else value
