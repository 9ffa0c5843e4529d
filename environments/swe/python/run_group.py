"""Runs tests of one file in a process of their own. stdin: how, as JSON; the descriptor named: a line for each test, then the end."""

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

    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", how["root"], "-o", "addopts="]
    pytest.main([*options, *how["files"]], plugins=[Reporter()])


def run_plainly(how, wanted, say) -> None:
    """Functions named test_… of the test files, without a library: for trees so small that pytest would be most of the work."""
    sys.path += [os.path.join(how["root"], folder) for folder in how["source_roots"]]
    for file in how["files"]:
        scope: dict = {"__name__": "tests"}
        with open(file, encoding="utf-8") as source:
            text = source.read()
        try:
            exec(compile(text, file, "exec"), scope)
        except Exception as error:
            names = sorted(wanted or [])
            for test in names:
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
