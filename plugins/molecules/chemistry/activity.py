"""The activity `verifySubject`: a request of the contract in, an answer out."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from .calculation import TIERS, check
from .contract import Abstained, BadRequest, Finding, Json, TierRequest, answer
from .process_pool import Crashed, ProcessPool

BEAT_SECONDS = 1.0
MOST_CRASHES = 3
"""Fresh processes that a calculation may take down before it is the calculation's own fault."""
TIME_SHARE = 0.9
"""Of the attempt's time, after which a calculation is given up: what is too slow once is too slow again."""


def create_verify_subject(tier: str, pool: ProcessPool) -> Callable[[Json], Awaitable[Json]]:
    @activity.defn(name="verifySubject")
    async def verify_subject(value: Json) -> Json:
        started = time.monotonic()
        try:
            request = TierRequest.from_json(value)
            check(request.verifier, request.subject)
            if TIERS[request.verifier] != tier:
                raise BadRequest(f"{request.verifier} belongs to the {TIERS[request.verifier]} tier, not to {tier}")
            finding = await calculate(request, pool)
        except BadRequest as error:
            raise ApplicationError(str(error), type="gradus.verifier.bad-request", non_retryable=True) from error
        except asyncio.CancelledError:
            if activity.is_worker_shutdown() and not activity.is_cancelled():
                raise ApplicationError("the worker is stopping", type="gradus.infra.worker-stopping") from None
            raise
        return answer(request, finding, time.monotonic() - started)

    return verify_subject


async def calculate(request: TierRequest, pool: ProcessPool) -> Finding:
    limit = activity.info().start_to_close_timeout
    seconds = None if not limit else limit / timedelta(seconds=1) * TIME_SHARE
    beat: dict[str, Json] = {"verifier": request.verifier}
    last = ""
    try:
        async with asyncio.timeout(seconds), heartbeats(beat):
            for crashes in range(MOST_CRASHES):
                beat["crashes"] = crashes
                try:
                    return await pool.calculate(request.verifier, request.subject, lambda pid: beat.update(pid=pid))
                except Crashed as crash:
                    last = str(crash)
                    activity.logger.warning("%s: %s", request.verifier, last)
    except TimeoutError:
        return Abstained("time-limit", f"not done within {seconds:g} s")
    return Abstained("crashed", f"{MOST_CRASHES} times {last}")


@asynccontextmanager
async def heartbeats(details: dict[str, Json]) -> AsyncIterator[None]:
    """A sign of life every second, with what is in `details` then; it is also how a cancellation comes."""

    async def beat() -> None:
        while True:
            activity.heartbeat(dict(details))
            await asyncio.sleep(BEAT_SECONDS)

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()
