"""Starts a process and a daemon while it is imported, and then is imported, fails to be, or hangs, as THEN says."""

import os
import subprocess
import time

started = subprocess.Popen(["sleep", "600"])
# A session of its own, and a child of nobody's.
daemon = subprocess.run(
    ["sh", "-c", "sleep 600 >&- 2>&- & echo $!"], stdout=subprocess.PIPE, text=True, start_new_session=True
)
with open(os.environ["STARTED"], "w") as out:
    out.write(f"{started.pid}\n{int(daemon.stdout)}\n")

if os.environ["THEN"] == "fails":
    raise ImportError("as it was told")
while os.environ["THEN"] == "hangs":
    time.sleep(1)


def answer():
    return 42
