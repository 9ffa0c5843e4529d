"""Judges, in a container of Harbor's, what stands in the working folder, as environments/families/swe/judge.ts does.

Exit 0: mended. /tests has this file, the programs that it needs and task.json.
"""

import json
import os
import subprocess
import sys

NOBODY = 65534
TESTS = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    with open(f"{TESTS}/task.json", encoding="utf-8") as file:
        task = json.load(file)
    changed = sources(task)
    if not changed:
        sys.exit("no source was changed")
    folders = [*sys.path, *os.environ.get("PYTHONPATH", "").split(":")]
    site = [folder for folder in folders if os.path.isdir(f"{folder}/pytest")][:1]
    refuse(judged_apart(task, changed, site))
    within = task["requests"]["within"]
    if within["tests"]:
        refuse(judged_within(task, changed, site))
    print(f"{len(task['requests']['apart']['tests']) + len(within['tests'])} tests pass")


def refuse(why: str | None) -> None:
    if why is not None:
        sys.exit(why)


def judged_apart(task: dict, changed: dict, site: list) -> str | None:
    """Why not, by tests of code in a process of its own: another user's where this one is root, who reads no test then."""
    root = os.getuid() == 0
    if root:
        os.chmod(TESTS, 0o700)
    request = {**task["requests"]["apart"], "line": None, "user": NOBODY if root else None, "root": "/work/apart", "site": site}
    request["tree"] = {**request["tree"], **changed}
    request["code"] = {**request["code"], **changed}
    request["changed"] = {path: [task["tree"].get(path, ""), text] for path, text in changed.items()}
    if not root:
        # The code would find the sound one beside it.
        request["sound"] = None
    request["draw"] = json.dumps(sorted(changed.items()))
    request["programs"] = {name: program(name) for name in ("guard", "styles", "wire", "mirror", "fresh", "code", "tests")}
    report = said_by(["-s", "-S", "-B", "-c", request["programs"]["tests"]], request)
    if report is None:
        return "the tests came to no end"
    why = refused(report) or failing(report["tests"], request["tests"])
    if why is None and report["different"] is not None:
        return f"asked afresh, it is not as it was before the bug: {report['different']}"
    return f"came to no end: {report['failure']}" if why is None and report["failure"] is not None else why


def judged_within(task: dict, changed: dict, site: list) -> str | None:
    """Why not, by the tests that share a process with the code."""
    request = {**task["requests"]["within"], "site": site, "tree": {**task["tree"], **changed}, "changed": {}}
    request["programs"] = {name: program(name) for name in ("guard", "canaries", "run_group", "styles")}
    report = said_by(["-I", "-B", f"{TESTS}/run_tests.py"], request)
    if report is None:
        return "the tests came to no end"
    why = refused(report) or failing(report["tests"], request["tests"])
    if why is not None:
        return why
    for test in request["canaries"]:
        if report["canaries"].get(test, ["missing"])[0] != "failed":
            return f"a canary of {test} did not fail"
    if not report["whole"] or len(report["tests"]) != len(request["tests"]):
        return "the tests came to no whole report"
    return None


def said_by(arguments: list, request: dict) -> dict | None:
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    ran = subprocess.run([sys.executable, *arguments], input=json.dumps(request).encode(), stdout=subprocess.PIPE, env=env)
    lines = ran.stdout.decode("utf-8", "replace").splitlines()
    return json.loads(lines[-1]) if len(lines) >= 2 and lines[0] == "ready" else None


def refused(report: dict) -> str | None:
    return f"reaches for the interpreter: {report['refused'][0]}" if "refused" in report else None


def failing(said: dict, tests: list) -> str | None:
    for test in tests:
        outcome, why = said.get(test, ["missing", ""])
        if outcome != "passed":
            return f"{test} {outcome}: {why}"
    return None


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
