"""How tests are run, in the process that is asked to: by pytest, or plainly. `say` hears of each test what it came to, and why."""

import os
import sys


def run_pytest(how, wanted, say) -> None:
    sys.path[1:1] = how["site"]
    sys.path += [os.path.join(how["root"], folder) for folder in how["source_roots"]]
    import pytest

    class Reporter:
        def __init__(self) -> None:
            self.outcome = ("missing", "")

        def pytest_collection_modifyitems(self, items) -> None:
            if wanted is not None:
                items[:] = [item for item in items if item.nodeid in wanted]

        def pytest_runtest_logstart(self) -> None:
            self.outcome = ("missing", "")

        def pytest_runtest_logreport(self, report) -> None:
            # Of set-up, call and tear-down, the first that has not passed; it has passed where it was called.
            if report.outcome != "passed" and self.outcome[0] in ("missing", "passed"):
                crash = getattr(report.longrepr, "reprcrash", None)
                self.outcome = (report.outcome, crash.message[:300] if crash else "")
            elif report.when == "call" and self.outcome[0] == "missing":
                self.outcome = ("passed", "")

        def pytest_runtest_logfinish(self, nodeid) -> None:
            say(nodeid, *self.outcome)

    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", how["root"], "-o", "addopts=", "--tb=native", "--continue-on-collection-errors"]
    pytest.main([*options, *how["files"]], plugins=[Reporter()])


def run_plain(how, wanted, say) -> None:
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
