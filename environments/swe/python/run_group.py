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
    (run_with_pytest if how["style"] == "pytest" else run_plainly)(how, wanted, say)
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


def run_with_pytest(how, wanted, say) -> None:
    sys.path[1:1] = how["site"]
    sys.path += [os.path.join(how["root"], folder) for folder in how["source_roots"]]
    import pytest

    class Reporter:
        def __init__(self) -> None:
            self.outcome = ("passed", "")

        def pytest_collection_modifyitems(self, items) -> None:
            if wanted is not None:
                items[:] = [item for item in items if item.nodeid in wanted]

        def pytest_runtest_logstart(self) -> None:
            self.outcome = ("passed", "")

        def pytest_runtest_logreport(self, report) -> None:
            if self.outcome[0] == "passed" and report.outcome != "passed":
                crash = getattr(report.longrepr, "reprcrash", None)
                self.outcome = (report.outcome, crash.message[:300] if crash else "")

        def pytest_runtest_logfinish(self, nodeid) -> None:
            say(nodeid, *self.outcome)

    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", how["root"], "-o", "addopts=", "--tb=native", "--continue-on-collection-errors"]
    pytest.main([*options, *how["files"]], plugins=[Reporter()])


def run_plainly(how, wanted, say) -> None:
    """Functions named test_… of the test files, without a library: for trees so small that pytest would be most of the work."""
    sys.path += [os.path.join(how["root"], folder) for folder in how["source_roots"]]
    texts = {}
    for file in how["files"]:
        with open(file, encoding="utf-8") as source:
            texts[file] = source.read()
    for file in how["files"]:
        os.remove(file)
    for file, text in texts.items():
        scope: dict = {"__name__": "tests"}
        try:
            exec(compile(text, file, "exec"), scope)
        except Exception as error:
            for test in sorted(id for id in wanted or [] if id.startswith(f"{file}::")):
                say(test, "failed", f"{type(error).__name__}: {error}"[:300])
            continue
        for name, test in list(scope.items()):
            if not name.startswith("test_") or (wanted is not None and f"{file}::{name}" not in wanted):
                continue
            try:
                test()
            except AssertionError as error:
                line = text.splitlines()[error.__traceback__.tb_next.tb_lineno - 1].strip()
                say(f"{file}::{name}", "failed", line[:300])
            except Exception as error:
                say(f"{file}::{name}", "failed", f"{type(error).__name__}: {error}"[:300])
            else:
                say(f"{file}::{name}", "passed", "")


main()
