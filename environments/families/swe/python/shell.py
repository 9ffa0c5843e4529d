"""Runs one command in a copy of a tree. stdin: {tree, command, seconds} as JSON. stdout: a line when ready, then what came of it."""

import json
import os
import signal
import subprocess
import sys

ROOT = "/work/tree"
LONGEST_FILE = 1 << 20
LONGEST_OUTPUT = 60_000


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    tree = request["tree"]
    for path, text in tree.items():
        file = os.path.join(ROOT, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(text)
    os.makedirs(ROOT, exist_ok=True)
    print("ready", flush=True)
    env = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ":".join([ROOT, *(f"{ROOT}/{r}" for r in request["source_roots"]), *request["site"]]),
    }  # fmt: skip
    # A file and no pipe: what the command leaves running cannot keep us waiting.
    with open("/tmp/.output", "w+b") as output:
        shell = subprocess.Popen(
            ["sh", "-c", request["command"]],
            cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = shell.wait(request["seconds"])
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        size = output.seek(0, os.SEEK_END)
        output.seek(0)
        text = output.read(LONGEST_OUTPUT).decode("utf-8", "replace")
    print(json.dumps({"code": code, "output": text, "bytes": size, "changed": changes(tree)}))


def changes(tree: dict) -> dict:
    """New text by path, null for what is gone. Neither links nor what is no text, and no caches."""
    found = {}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("__pycache__", ".pytest_cache", ".git")]
        for name in files:
            file = os.path.join(folder, name)
            path = os.path.relpath(file, ROOT)
            if os.path.islink(file) or not os.path.isfile(file) or os.path.getsize(file) > LONGEST_FILE:
                continue
            try:
                with open(file, encoding="utf-8", newline="") as source:
                    found[path] = source.read()
            except (UnicodeDecodeError, OSError):
                continue
    changed = {path: text for path, text in found.items() if tree.get(path) != text}
    changed.update((path, None) for path in tree if path not in found)
    return changed


main()
