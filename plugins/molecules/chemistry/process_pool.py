"""Calculation processes that are kept for the next request, and killed when nobody wants the answer any more."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from .contract import BadRequest, Finding, Json, finding_from_json

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Crashed(Exception):
    """The calculation process died with the calculation in it."""


class ProcessPool:
    """Not for threads: all of it belongs to one event loop."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._idle: list[asyncio.subprocess.Process] = []

    async def calculate(self, verifier: str, subject: Json, on_start: Callable[[int], Any]) -> Finding:
        """Tells `on_start` the process's id. Raises Crashed and BadRequest; when cancelled the process is gone."""
        process = await self._take()
        on_start(process.pid)
        done = False
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"verifier": verifier, "subject": subject}).encode() + b"\n")
            try:
                await process.stdin.drain()
            except ConnectionError:
                pass  # it is gone, which the next line finds too
            line = await process.stdout.readline()
            done = line.endswith(b"\n")
        finally:
            if done:
                self._idle.append(process)
            else:
                await kill(process)
        if not done:
            raise Crashed(f"the calculation's process ended ({describe(process.returncode)})")
        said = json.loads(line)
        if "refused" in said:
            raise BadRequest(said["refused"])
        return finding_from_json(said)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(kill(process) for process in idle))

    async def _take(self) -> asyncio.subprocess.Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"{__package__}.calculation_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
            env={**os.environ, **{name: str(self._threads) for name in THREAD_VARIABLES}},
        )


async def kill(process: asyncio.subprocess.Process) -> None:
    """SIGKILL, and waits until it is gone. A cancellation that comes meanwhile waits too."""
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await asyncio.shield(asyncio.ensure_future(process.wait()))


def describe(code: int | None) -> str:
    # What asyncio says of a process whose status it could not learn.
    if code == 255:
        return "nobody saw how"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
