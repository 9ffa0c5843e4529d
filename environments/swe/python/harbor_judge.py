"""Judges, in a container of Harbor's, what stands in the working folder, as environments/swe/judge.ts does.

Exit 0: mended. /tests has this file, the programs that it needs and task.json.
"""

import json
import os
import subprocess
import sys

TESTS = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    with open(f"{TESTS}/task.json", encoding="utf-8") as file:
        task = json.load(file)
    changed = sources(task)
    if not changed:
        sys.exit("no source was changed")
    folders = [*sys.path, *os.environ.get("PYTHONPATH", "").split(":")]
    site = [folder for folder in folders if os.path.isdir(f"{folder}/pytest")][:1]
    programs = {name: program(name) for name in ("guard", "canaries", "run_group")}
    request = {
        **task["request"],
        "programs": programs,
        "tree": {**task["tree"], **changed},
        "changed": {path: [task["tree"].get(path, ""), text] for path, text in changed.items()},
        "site": site,
    }
    said = subprocess.run(
        [sys.executable, "-I", "-B", f"{TESTS}/run_tests.py"],
        input=json.dumps(request).encode(),
        stdout=subprocess.PIPE,
    ).stdout
    lines = said.decode("utf-8", "replace").splitlines()
    if len(lines) < 2 or lines[0] != "ready":
        sys.exit("the tests came to no end")
    report = json.loads(lines[-1])
    if "refused" in report:
        sys.exit(f"reaches for the interpreter: {report['refused'][0]}")
    for test in request["tests"]:
        outcome, why = report["tests"].get(test, ["missing", ""])
        if outcome != "passed":
            sys.exit(f"{test} {outcome}: {why}")
    for test in request["canaries"]:
        if report["canaries"].get(test, ["missing"])[0] != "failed":
            sys.exit(f"a canary of {test} did not fail")
    if not report["whole"] or len(report["tests"]) != len(request["tests"]):
        sys.exit("the tests came to no whole report")
    print(f"{len(request['tests'])} tests pass")


def program(name: str) -> str:
    with open(f"{TESTS}/{name}.py", encoding="utf-8") as file:
        return file.read()


def sources(task: dict) -> dict:
    """Sources of Python in the working folder that are not as they were."""
    changed = {}
    for folder, _, files in os.walk("."):
        for name in files:
            path = os.path.relpath(os.path.join(folder, name))
            counts = below(task["sources"], path) and not below(task["tests"], path)
            if not counts or not name.endswith(".py") or name == "conftest.py" or os.path.islink(path):
                continue
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
            if task["tree"].get(path) != text:
                changed[path] = text
    return changed


def below(places: list, path: str) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


main()
