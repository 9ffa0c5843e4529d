"""Writes math.json and squad.json. Run again it writes the same bytes.

python write.py [pairs of either] [seed]"""

import json
import pathlib
import sys
from collections import Counter

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

import math_pairs
import squad

HERE = pathlib.Path(__file__).parent
READ_AS = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()]


def math_verify(expected, given):
    read = [parse(text, extraction_config=READ_AS, parsing_timeout=None) for text in (f"${expected}$", f"\\boxed{{{given}}}")]
    return verify(*read, timeout_seconds=None)


def math(count, seed):
    for kind, expected, given, right in math_pairs.pairs(count, seed):
        yield [kind, expected, given, right, math_verify(expected, given)]


def answers(count, seed):
    for given, expected in squad.pairs(count, seed):
        found = [squad.normalized(given), squad.exact_match(given, expected), squad.f1(given, expected)]
        yield [given, expected, *found]


def write(name, rows):
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    (HERE / name).write_text("[\n" + lines + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    count, seed = (int(word) for word in (sys.argv[1:] + ["1200", "1"][len(sys.argv) - 1 :]))
    pairs = list(math(count, seed))
    write("math.json", pairs)
    write("squad.json", answers(count, seed))
    for (kind, right, found), times in sorted(Counter((row[0], row[3], row[4]) for row in pairs).items()):
        if right != found:
            print(f"{kind}: {times} {'right' if right else 'wrong'} pairs, math-verify says {found}")
