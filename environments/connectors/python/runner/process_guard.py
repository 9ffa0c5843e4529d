"""A process that stands over another one, and runs nothing of the module: it ends when that does, and nothing stays behind."""

import os
import signal
import time

import descendants
import worker

# How long to go on ending what starts anew while it is ended, seconds.
PATIENCE = 2.0


def go_on_guarded(channel: int) -> None:
    """
    Goes on in a process of its own. This one stays, and ends that one with all that is below it: when it has ended by
    itself, when SIGTERM says so, and on Linux when the process that started us has ended, whatever the module does then.
    """
    guarded = 0

    def end(code: int) -> None:
        if guarded:
            # Elsewhere than on Linux its group is all that can be found.
            try:
                os.killpg(guarded, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has ended
        descendants.end_children(set(), time.monotonic() + PATIENCE)
        os._exit(code)

    signal.signal(signal.SIGTERM, lambda *_: end(0))
    worker.keep_orphans()
    worker.end_with_parent(signal.SIGTERM)
    # So that SIGTERM finds either no process, or one whose number is known.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    guarded = os.fork()
    lead_group(guarded)
    if guarded == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        worker.end_with_parent()
        worker.keep_orphans()
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.close(channel)
    _, status = os.waitpid(guarded, 0)
    code = os.waitstatus_to_exitcode(status)
    end(code if code >= 0 else 128 - code)


def lead_group(pid: int) -> None:
    """Both sides do it, so that it is so for whoever comes first: with the group everything ends that it has started."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # it has done so itself, or is gone
