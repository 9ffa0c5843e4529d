"""A process that does one calculation after the other: a line of JSON in, a line out.

It can be killed in the middle, and may die of what native code does; the worker lives on. It ends with its parent.
Run by itself it serves whoever writes to it: `python -m chemistry.calculation_process`.
"""

import json
import os
import queue
import sys
import threading
from typing import IO

from .calculation import calculate
from .contract import BadRequest, Json


def main() -> None:
    # Libraries print as they please; the answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=read_lines, args=(sys.stdin, requests), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        print(json.dumps(respond(request)), file=answers, flush=True)


def read_lines(source: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    """Ends the process with its input, also in mid-calculation: nobody is left to read the answer."""
    for line in source:
        lines.put(line)
    os._exit(0)


def respond(request: Json) -> Json:
    try:
        finding = calculate(request["verifier"], request["subject"])
        fields = finding.fields()
    except BadRequest as error:
        return {"refused": str(error)}
    except ValueError as error:
        return {"kind": "abstained", "type": "calculation-error", "reason": str(error)}
    return {"kind": finding.kind, "evidence": finding.evidence, **fields}


if __name__ == "__main__":
    main()
