"""Runs tests of files in a process of their own. stdin: how, as JSON; the descriptor named: a line for each test, then the end."""

import json
import os
import resource
import sys


def main() -> None:
    # The current folder is no place to import from, for what is ours.
    sys.path.remove("")
    # Read before any code under test is there, and kept in this function alone.
    how = json.loads(sys.stdin.buffer.readline())
    results = os.fdopen(int(sys.argv.pop()), "w", encoding="utf-8")
    os.set_inheritable(results.fileno(), False)
    nonce = how["nonce"]
    resource.setrlimit(resource.RLIMIT_CPU, (how["cpu_seconds"], how["cpu_seconds"]))
    os.chdir(how["root"])
    watch(how["root"], [*how["files"], *how["helpers"]])
    count = 0

    def say(test: str, outcome: str, why: str) -> None:
        nonlocal count
        count += 1
        results.write(json.dumps([nonce, "test", test, outcome, why]) + "\n")
        results.flush()

    wanted = None if how["tests"] is None else frozenset(how["tests"])
    styles: dict = {"__name__": "styles"}
    exec(compile(how["styles"], "styles.py", "exec"), styles)
    styles[f"run_{how['style']}"](how, wanted, say)
    results.write(json.dumps([nonce, "end", count]) + "\n")
    results.flush()
    os._exit(0)


# What no code under test has to do while a test waits for it, whoever does it for it.
NEVER = frozenset(
    "os.exec os.fork os.forkpty os.kill os.killpg signal.pthread_kill fcntl.fcntl resource.prlimit os.posix_spawn os.system os.rename os.link os.symlink subprocess.Popen "
    "ctypes.dlopen ctypes.dlsym gc.get_objects gc.get_referrers gc.get_referents sys._current_frames sys.settrace "
    "sys.setprofile sys.addaudithook".split()
)
# What it has not to do itself. Libraries do: a named tuple asks who has made it.
NOT_ITSELF = frozenset(["sys._getframe", "compile", "exec"])
FRAMES = frozenset(["gi_frame", "cr_frame", "ag_frame", "tb_frame"])


def watch(root: str, tests: list) -> None:
    """Ends the process, and with it the run, where code under test reaches for frames, for the tests, or for processes."""
    real, fsdecode, frame_here, end = os.path.realpath, os.fsdecode, sys._getframe, os._exit
    hidden = frozenset(real(os.path.join(root, test)) for test in tests)
    ours = hidden | frozenset(tests)
    beginning = root + "/"

    def is_judged(frame) -> bool:
        file = frame.f_code.co_filename
        return file.startswith(beginning) and file not in ours

    def is_waited_for(frame) -> bool:
        while frame is not None and not is_judged(frame):
            frame = frame.f_back
        return frame is not None

    inside = False

    def hook(event: str, args: tuple) -> None:
        nonlocal inside
        if inside:
            return
        inside = True
        try:
            if event == "open":
                path = args[0]
                if isinstance(path, (str, bytes)) and is_waited_for(frame_here(1)):
                    file = real(fsdecode(path))
                    if file in hidden or file.startswith("/proc/"):
                        end(1)
            elif event in NOT_ITSELF or (event == "object.__getattr__" and args[1] in FRAMES):
                if is_judged(frame_here(1)):
                    end(1)
            elif event in NEVER and is_waited_for(frame_here(1)):
                end(1)
        finally:
            inside = False

    sys.addaudithook(hook)


main()
