"""Ends processes by who has started them, as Linux knows it. Elsewhere there is nothing to be found."""

import os
import signal
import time
from collections.abc import Callable


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it is gone, or this is not Linux
    return found


def ended_children() -> int:
    """How many children of this process have ended without that anybody has waited for them."""
    return sum(map(has_ended, children_of(os.getpid())))


def below(pid: int) -> list[int]:
    """All that is below a process and has not ended."""
    found: list[int] = []
    waiting = children_of(pid)
    while waiting:
        one = waiting.pop()
        waiting += children_of(one)
        if not has_ended(one):
            found.append(one)
    return found


def end_below(pid: int, latest: float) -> None:
    """Ends all that is below a process, which is stopped first: what loses its parent comes to it, and it starts no more."""
    send(pid, signal.SIGSTOP)
    end_all(lambda: below(pid), latest)


def end_children(known: set[int], latest: float) -> None:
    """Ends the children of this process that are not known: orphans of one that is gone. With them what is below them."""
    own = os.getpid()

    def orphans() -> list[int]:
        while True:
            strange = [pid for pid in children_of(own) if pid not in known]
            # What those had started that are reaped has come to us by now, and may have come after we looked.
            if not any([is_reaped(pid) for pid in strange]) or time.monotonic() > latest:
                return [each for pid in strange for each in [pid, *below(pid)]]

    end_all(orphans, latest)


def is_reaped(child: int) -> bool:
    """Whether it has ended, and is no child of this process any more. What it had started is, where orphans are kept."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True  # it was waited for already


def end_all(find: Callable[[], list[int]], latest: float) -> None:
    while found := find():
        for pid in found:
            send(pid, signal.SIGKILL)
        if time.monotonic() > latest:
            tell(f"processes {found} do not end\n")
            return
        time.sleep(0.001)


def tell(words: str) -> None:
    try:
        os.write(2, words.encode())
    except OSError:
        pass  # nobody listens any more; there may be more to end


def has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or it is somebody else by now (a program of another user's, with setuid)
