"""The learner's queue of Temporal, served by rank 0: heartbeats, cancellation, and failures as Temporal wants them."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from fault import Fault
from learner import Learner
from ranks import Stopped

QUEUE = "gradus-learner"
"""As `QUEUES.learner` in core/names.ts; a golden file holds them together."""
BEAT_SECONDS = 1.0
"""Temporal gives an attempt up that is silent for 20 seconds."""
PLAIN_ATTEMPTS = 5
"""Attempts at a step that fails in a way that nobody has thought of."""
FULL = (28, 122)
"""ENOSPC, EDQUOT."""


def failure_of(error: Exception, attempt: int) -> ApplicationError:
    """As workers/failures.ts has it: the type says the boundary, and whether a retry can help."""
    if isinstance(error, OSError) and error.errno in FULL:
        message = f"a disk of this worker is full ({error}): make room; the work goes on by itself then"
        error = Fault("infra", "disk-full", message, retryable=True)
    if isinstance(error, Fault):
        return ApplicationError(str(error), type=error.failure_type, non_retryable=not error.retryable)
    unexpected = f"{type(error).__name__}: {error}"
    return ApplicationError(unexpected, type="gradus.infra.unexpected", non_retryable=attempt >= PLAIN_ATTEMPTS)


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """A sign of life every second; it is also how a cancellation comes."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_SECONDS)

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()


def activities_of(learner: Learner, call: Callable, broken: asyncio.Event) -> list[Callable]:
    """One step at a time, in a thread of its own: the event loop stays free for heartbeats. `broken` is set where the ranks are
    no longer where they were before the step, so that this process must be replaced."""
    pool = ThreadPoolExecutor(1)

    async def serve(name: str, request: dict) -> dict:
        stop = threading.Event()

        def compute() -> dict:
            learner.ranks.told((name, request))
            return call(learner, name, request, stop.is_set)

        try:
            async with heartbeats():
                work = asyncio.get_running_loop().run_in_executor(pool, compute)
                try:
                    return await asyncio.shield(work)
                except asyncio.CancelledError:
                    # The thread goes on until it looks; the next step must not begin beside it.
                    stop.set()
                    await asyncio.wait([work])
                    if not work.cancelled():
                        work.exception()
                    raise
        except asyncio.CancelledError:
            if activity.is_worker_shutdown() and not activity.is_cancelled():
                raise ApplicationError("the worker is stopping", type="gradus.infra.worker-stopping") from None
            raise
        except Exception as error:
            if learner.ranks.sharded and not learner.ranks.common(error):
                logging.exception("a rank was lost")
                broken.set()
                message = f"a rank of the learner was lost ({error}): all are started again, and the step is made again"
                raise ApplicationError(message, type="gradus.learner.rank-lost") from error
            raise failure_of(error, activity.info().attempt) from error

    @activity.defn(name="trainStep")
    async def train_step(request: dict) -> dict:
        return await serve("trainStep", request)

    @activity.defn(name="scoreTokens")
    async def score_tokens(request: dict) -> dict:
        return await serve("scoreTokens", request)

    @activity.defn(name="probePolicy")
    async def probe_policy(request: dict) -> None:
        await serve("probePolicy", request)

    @activity.defn(name="judgeEpisodes")
    async def judge_episodes(request: dict) -> dict:
        return await serve("judgeEpisodes", request)

    @activity.defn(name="rewardQuality")
    async def reward_quality(request: dict) -> dict:
        return await serve("rewardQuality", request)

    return [train_step, score_tokens, probe_policy, judge_episodes, reward_quality]


async def run(learner: Learner, call: Callable) -> None:
    address = os.environ.get("TEMPORAL_ADDRESS") or "127.0.0.1:7233"
    client = await Client.connect(address, namespace=os.environ.get("TEMPORAL_NAMESPACE") or "default")
    stop, broken = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if os.environ.get("GRADUS_LIFELINE"):
        follow(stop)
    worker = Worker(
        client,
        task_queue=QUEUE,
        activities=activities_of(learner, call, broken),
        max_concurrent_activities=1,
        max_heartbeat_throttle_interval=timedelta(seconds=2),
        graceful_shutdown_timeout=timedelta(seconds=2),
    )
    running = asyncio.ensure_future(worker.run())
    print(f"learner: {learner.backend}", flush=True)
    ends = [asyncio.ensure_future(event.wait()) for event in (stop, broken)]
    await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
    await worker.shutdown()
    await running
    if broken.is_set():
        raise OSError("a rank was lost: the ranks must be started again")


def follow(stop: asyncio.Event) -> None:
    """Ends when the one who started this closes the other side of standard input, whichever way it ended."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def readable() -> None:
        if os.read(descriptor, 4096) == b"":
            loop.remove_reader(descriptor)
            stop.set()

    loop.add_reader(descriptor, readable)


def serve(learner: Learner, call: Callable) -> None:
    asyncio.run(run(learner, call))
    # Other ranks wait for the next step.
    learner.ranks.told(None)
