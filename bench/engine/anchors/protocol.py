"""Requests and answers as JSON lines on stdin and stdout, so that runs of several engines can take turns."""

import json
import resource
import sys
import time
import traceback
from collections.abc import Callable

Handler = Callable[..., dict]


def serve(handlers: dict[str, Handler]) -> None:
    """Answers `{"op": NAME, ...}` with what its handler returns, with the seconds it took and the peak memory so far."""
    answers = sys.stdout
    # Whatever a library prints must not be taken for an answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        handler = handlers[request.pop("op")]
        try:
            started = time.perf_counter()
            answer = handler(**request)
            answer.setdefault("seconds", time.perf_counter() - started)
            answer["peakBytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
