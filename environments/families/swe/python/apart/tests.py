"""Runs tests here, of code that lives in another process. stdin: the request as JSON; stdout: a line when ready, then the report.

The code's process is reached over the descriptor that the request names, or is started here, as another user, where there
is none: a container of Harbor's has no second sandbox. Files of the code are here by their names alone.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import traceback

LONGEST_FAILURE = 300


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    report_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    report_to.write("ready\n")
    report_to.flush()
    report_to.write(json.dumps(report(request)) + "\n")
    report_to.flush()
    os._exit(0)


def report(request: dict) -> dict:
    programs = request["programs"]
    guard = loaded(programs["guard"], "guard")
    refused = [
        f"{path}: {finding}"
        for path, (before, after) in sorted(request.get("changed", {}).items())
        for finding in guard["findings"](before, after)
    ]
    if refused:
        return {"refused": refused[:20]}
    apart = loaded(programs["wire"] + programs["mirror"] + programs["fresh"], "apart")
    outcomes: dict = {}
    different = None
    script = recording(request, apart) if request["sound"] is not None else None
    try:
        line = line_to_code(request)
        peer = apart["Tests"](*line)
        peer.ask("begin", request["code"], request["source_roots"], request["cpu_seconds"])
        run(request, apart["Importer"], peer, lambda test, outcome, why: outcomes.__setitem__(test, [outcome, why]))
        if script is not None and all(outcome == "passed" for outcome, _ in outcomes.values()):
            noted = script()
            sound, code = apart["Player"](*line_to_sound(request, apart), noted, {}), apart["Player"](*line, noted, peer.abouts)
            different = apart["difference"](noted, sound, code, request["draw"])
    except apart["Failed"] as failure:
        return {"tests": outcomes, "failure": str(failure)[:LONGEST_FAILURE], "different": different}
    return {"tests": outcomes, "failure": None, "different": different}


def recording(request: dict, apart: dict):
    """A process that has imported nothing of the code yet; when called, what the tests that see the bug ask of the sound code."""
    wait, begin = os.pipe()
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.close(begin)
        try:
            if os.read(wait, 1):
                peer = apart["Recorder"](*line_to_sound(request, apart))
                of_sound = {**request, "code": request["sound"], "tests": request["asked_by"], "root": request["root"] + "-sound"}
                run(of_sound, apart["Importer"], peer, lambda test, outcome, why: None)
                with os.fdopen(theirs, "w") as out:
                    json.dump(peer.script, out)
        except BaseException:
            # Whoever waits for the script has none, and says so.
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(theirs)

    def script() -> list:
        os.write(begin, b"x")
        with os.fdopen(ours) as said:
            return json.load(said)

    return script


def line_to_sound(request: dict, apart: dict) -> tuple:
    line = process_of_code({**request, "user": None})
    apart["Tests"](*line).ask("begin", request["sound"], request["source_roots"], request["cpu_seconds"])
    return line


def run(request: dict, importer, peer, say) -> None:
    root = request["root"]
    os.makedirs(root, mode=0o700)
    for path, text in request["tree"].items():
        file = os.path.join(root, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write("" if path in request["code"] else text)
    os.chdir(root)
    sys.path[:] = [folder for folder in sys.path if folder]
    sys.meta_path.insert(0, importer(peer, root, request["source_roots"], list(request["code"]), request["test_folders"]))
    how = {"root": root, "files": request["files"], "site": request["site"], "source_roots": request["source_roots"]}
    wanted = None if request["tests"] is None else frozenset(request["tests"])
    loaded(request["programs"]["styles"], "styles")[f"run_{request['style']}"](how, wanted, say)


def line_to_code(request: dict):
    if request["line"] is not None:
        line = socket.socket(fileno=request["line"])
        return line.makefile("rb"), line.makefile("wb")
    return process_of_code(request)


def process_of_code(request: dict):
    programs = request["programs"]
    nobody = request["user"]
    user = {} if nobody is None else {"user": nobody, "group": nobody, "extra_groups": []}
    ours, theirs = socket.socketpair()
    code = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", programs["wire"] + programs["code"]],
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, cwd="/tmp", start_new_session=True,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/tmp", "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}, umask=0o077, **user,
    )  # fmt: skip
    theirs.close()

    # What waits for ever comes to its end, also where processes that it has started hold the line: nobody else ends it here.
    def end() -> None:
        code.kill()
        ours.shutdown(socket.SHUT_RDWR)

    limit = threading.Timer(request["wall_seconds"], end)
    limit.daemon = True
    limit.start()
    return ours.makefile("rb"), ours.makefile("wb")


def loaded(text: str, name: str) -> dict:
    scope: dict = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), scope)
    return scope


main()
