"""The chemistry worker: `python -m chemistry [TIER…]`, with this folder's parent as PYTHONPATH.

TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say where Temporal is. GRADUS_CHEMISTRY_SLOTS calculations of a tier run at a
time, each with GRADUS_CHEMISTRY_THREADS threads. With GRADUS_LIFELINE_FD the worker says there, in a line of JSON,
when it is ready, and ends when the other side closes.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from .activity import create_verify_subject
from .calculation import TIERS
from .process_pool import ProcessPool

POOL = "chemistry"


def queue_of(tier: str) -> str:
    """As `tierQueue` in core/names.ts; a golden file holds them together."""
    return f"gradus-verifier-{tier}-{POOL}"


def positive(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text == "":
        return default
    if not text.isdigit() or int(text) < 1:
        raise SystemExit(f"{name} is {text!r}; it must be a whole number from 1")
    return int(text)


async def main(tiers: list[str]) -> None:
    slots = positive("GRADUS_CHEMISTRY_SLOTS", max(1, (os.cpu_count() or 1) // 2))
    threads = positive("GRADUS_CHEMISTRY_THREADS", 1)
    address = os.environ.get("TEMPORAL_ADDRESS") or "127.0.0.1:7233"
    client = await Client.connect(address, namespace=os.environ.get("TEMPORAL_NAMESPACE") or "default")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    lifeline = os.environ.pop("GRADUS_LIFELINE_FD", "")

    pool = ProcessPool(threads)
    workers = [
        Worker(
            client,
            task_queue=queue_of(tier),
            activities=[create_verify_subject(tier, pool)],
            max_concurrent_activities=slots,
            max_heartbeat_throttle_interval=timedelta(seconds=2),
            graceful_shutdown_timeout=timedelta(seconds=2),
        )
        for tier in tiers
    ]
    running = [asyncio.ensure_future(worker.run()) for worker in workers]
    if lifeline != "":
        await follow(int(lifeline), tiers, slots, threads, stop)
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait([*running, stopped], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*(worker.shutdown() for worker in workers))
    await asyncio.gather(*running)
    await pool.close()


async def follow(descriptor: int, tiers: list[str], slots: int, threads: int, stop: asyncio.Event) -> None:
    os.set_inheritable(descriptor, False)
    each = f"{threads} thread{'' if threads == 1 else 's'} each"
    descriptions = [f"chemistry: {tier} tier, {slots} at a time, {each}" for tier in tiers]
    os.write(descriptor, json.dumps({"descriptions": descriptions}).encode() + b"\n")

    def readable() -> None:
        if os.read(descriptor, 4096) == b"":
            asyncio.get_running_loop().remove_reader(descriptor)
            stop.set()

    asyncio.get_running_loop().add_reader(descriptor, readable)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    known = list(dict.fromkeys(TIERS.values()))
    asked = sys.argv[1:] or known
    unknown = [tier for tier in asked if tier not in known]
    if unknown:
        raise SystemExit(f"no tier {', '.join(unknown)} here; there are {', '.join(known)}")
    status = 0
    try:
        asyncio.run(main(asked))
    except (RuntimeError, OSError) as error:
        status = 1
        print(f"chemistry worker: {error}", file=sys.stderr)
    # All is done, and the threads of Temporal's client go on: one that comes back to Python while it is taken down aborts it.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
