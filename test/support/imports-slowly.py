"""Says by the file BEGUN that its import has begun, which lasts until there is the file GO."""

import os
import time

open(os.environ["BEGUN"], "w").close()
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.01)


def answer():
    return 42
