"""The learner in PyTorch: `python workers/torch/main.py`, or under torchrun as several ranks.

It serves the learner's queue with the activities of workers/learner.ts. TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say where
Temporal is, GRADUS_S3_URL, GRADUS_S3_ACCESS_KEY, GRADUS_S3_SECRET_KEY and GRADUS_S3_BUCKET where the store is. A step has
GRADUS_TORCH_THREADS threads. When it is ready it says so in a line on standard output; with GRADUS_LIFELINE it ends when
standard input does. `--capabilities` says what this learner can, and ends. `--stdin` serves lines of JSON,
{"activity", "request"}, in place of Temporal, each with a line {"result"} or {"failure"}.
"""

import argparse
import ctypes
import json
import logging
import os
import signal
import sys

import torch

from fault import Fault
from learner import Learner
from losses.own import load_own
from objects import ObjectStore
from ranks import Ranks

ACTIVITIES = ("trainStep", "scoreTokens", "probePolicy", "judgeEpisodes", "rewardQuality")


def threads() -> int:
    text = os.environ.get("GRADUS_TORCH_THREADS") or str(min(os.cpu_count() or 1, 8))
    if not text.isdigit() or int(text) < 1:
        raise Fault("infra", "settings", f"GRADUS_TORCH_THREADS is {text!r}; it must be a whole number from 1")
    return int(text)


def end_with_parent() -> None:
    """Linux: a rank whose torchrun was killed is of no use, and would hold its memory."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def call(learner: Learner, activity: str, request: dict, stopped=lambda: False) -> dict | None:
    """Of every rank, at the same time."""
    act = {
        "trainStep": learner.train_step,
        "scoreTokens": learner.score_tokens,
        "probePolicy": learner.probe_policy,
        "judgeEpisodes": learner.refuse_reward_models,
        "rewardQuality": learner.refuse_reward_models,
    }
    return act[activity](request, stopped)


def follow(learner: Learner) -> None:
    """What a rank other than 0 does: it makes every step with rank 0, until that says that it is over."""
    while (asked := learner.ranks.told(None)) is not None:
        try:
            call(learner, *asked)
        except Exception as error:
            if not learner.ranks.common(error):
                raise


def serve_lines(learner: Learner) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        learner.ranks.told((asked["activity"], asked["request"]))
        try:
            said = {"result": call(learner, asked["activity"], asked["request"])}
        except Fault as fault:
            said = {"failure": {"type": fault.failure_type, "retryable": fault.retryable, "message": str(fault)}}
        print(json.dumps(said), flush=True)
    learner.ranks.told(None)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the learner's queue.")
    parser.add_argument("--capabilities", action="store_true")
    parser.add_argument("--stdin", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(threads())
    load_own()
    if "WORLD_SIZE" in os.environ:
        end_with_parent()
    ranks = Ranks.join()
    if options.capabilities:
        print(json.dumps(Learner(None, ranks).capabilities()))
        return
    learner = Learner(ObjectStore.connect(os.environ), ranks)
    if ranks.rank > 0:
        follow(learner)
    elif options.stdin:
        serve_lines(learner)
    else:
        from temporal import serve

        serve(learner, call)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    status = 0
    try:
        main()
    except Fault as fault:
        status = 1
        print(f"torch learner: {fault}", file=sys.stderr)
    except (RuntimeError, OSError):
        status = 1
        logging.exception("torch learner")
    # All is done, and the threads of Temporal's client go on: one that comes back to Python while it is taken down aborts it.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
