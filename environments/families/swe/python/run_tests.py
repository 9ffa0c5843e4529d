"""Runs tests of a tree that nobody trusts, and says what came of each.

This process never imports the code under test: each run of tests is a process of its own in a tree of its own, which
answers over a pipe, in lines with a nonce. Other processes of the same user cannot look into this one.
stdin: the request as JSON. stdout: a line when ready, one for each run that begins, with its time, then the report as JSON.
"""

import ctypes
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time


PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def main() -> None:
    started = time.monotonic()
    request = json.loads(sys.stdin.buffer.read())
    libc = ctypes.CDLL(None)
    # Not dumpable: /proc/PID/{fd,mem,environ} of this process is closed to its children. Subreaper: what they leave behind
    # becomes a child of this process, and ends with its run.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("ready", flush=True)
    print(json.dumps(report(request, started)), flush=True)


def report(request: dict, started: float) -> dict:
    scope: dict = {"__name__": "guard"}
    exec(compile(request["programs"]["guard"], "guard.py", "exec"), scope)
    refused = [
        f"{path}: {finding}"
        for path, (before, after) in sorted(request.get("changed", {}).items())
        for finding in scope["findings"](before, after)
    ]
    if refused:
        return {"refused": refused[:20]}
    canary_scope: dict = {"__name__": "canaries"}
    exec(compile(request["programs"]["canaries"], "canaries.py", "exec"), canary_scope)

    # In two processes that look alike, in random order: tests, and canaries.
    canary, as_test = canary_scope["canary"], canary_scope["test"]
    name = f"_{random.SystemRandom().getrandbits(64):x}"
    every = request["tests"] is None
    files = [file for file in request["files"] if every or any(id.startswith(file + "::") for id in request["tests"])]
    tree = request["tree"]
    runs = [("tests", tree, files, request["tests"])]
    if request["canaries"]:
        alike = {file: as_test(tree[file], name) for file in files + request["helpers"]}
        runs = [("tests", {**tree, **alike}, files, request["tests"])]
        some = None if request["canaries"] == "all" else request["canaries"]
        files = [file for file in request["files"] if some is None or any(id.startswith(file + "::") for id in some)]
        turned = {file: canary(tree[file], name) for file in files + request["helpers"]}
        runs.append(("canaries", {**tree, **turned}, files, some))
    random.SystemRandom().shuffle(runs)

    said = {"tests": {}, "canaries": {}}
    whole = True
    for kind, tree, files, tests in runs:
        print(json.dumps(time.monotonic() - started), flush=True)
        said[kind], ended = run(request, tree, files, tests)
        whole &= ended
        if request["stop_at_failure"] and kind == "tests" and not (ended and all(o[0] == "passed" for o in said[kind].values())):
            break
    return {"whole": whole, **said}


def run(request: dict, tree: dict, files: list, tests: list | None) -> tuple[dict, bool]:
    """One process over files of tests: what each test came to, and whether the process said so to its end."""
    root = "/work/tree"
    shutil.rmtree(root, ignore_errors=True)
    write(root, tree)
    nonce = os.urandom(16).hex()
    ours, theirs = os.pipe()
    how = {
        "nonce": nonce, "root": root, "files": files, "helpers": request["helpers"], "tests": tests, "style": request["style"],
        "site": request["site"], "source_roots": request["source_roots"], "cpu_seconds": request["cpu_seconds"],
        "styles": request["programs"]["styles"],
    }  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-s", "-S", "-B", "-c", request["programs"]["run_group"], str(theirs)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[theirs],
        start_new_session=True, env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/tmp", "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
    )  # fmt: skip
    os.close(theirs)
    try:
        child.stdin.write(json.dumps(how).encode() + b"\n")
        child.stdin.close()
    except BrokenPipeError:
        pass
    text = read_to_the_end(ours, child, time.monotonic() + request["wall_seconds"])
    os.close(ours)
    end_all_children()
    child.wait()
    return outcomes_of(text, nonce)


def outcomes_of(text: bytes, nonce: str) -> tuple[dict, bool]:
    outcomes: dict = {}
    ended = False
    for line in text.decode("utf-8", "replace").splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            return {}, False
        if ended or not isinstance(said, list) or said[:1] != [nonce]:
            return {}, False
        if said[1] == "end":
            ended = said[2] == len(outcomes)
            if not ended:
                return {}, False
        elif said[2] in outcomes:
            return {}, False
        else:
            outcomes[said[2]] = [said[3], said[4]]
    return outcomes, ended


LONGEST_REPORT = 4 << 20


def read_to_the_end(pipe: int, child: subprocess.Popen, deadline: float) -> bytes:
    """Until the process is over, whoever else may still hold the pipe."""
    text = b""
    while len(text) < LONGEST_REPORT and time.monotonic() < deadline:
        over = child.poll() is not None
        if not select.select([pipe], [], [], 0 if over else 0.02)[0]:
            if over:
                break
            continue
        piece = os.read(pipe, 65536)
        if not piece:
            break
        text += piece
    return text


def end_all_children() -> None:
    """Also those that were orphaned: they are ours, as subreaper. They have come to us before we have reaped their parent."""
    me = str(os.getpid())
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if reaped:
            continue
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    parent = stat.read().rpartition(")")[2].split()[1]
                if parent == me:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.002)


def write(root: str, tree: dict) -> None:
    for path, text in tree.items():
        file = os.path.join(root, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(text)


main()
