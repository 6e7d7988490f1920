# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""spawns.py RATE [COMMAND]   Starts so many short programs a second (0: back to back), until
`stop`: COMMAND, or 30 ms of Python's work."""
import os
import subprocess
import sys
import time

import common

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "short.py")


def main(rate, *words):
    command = list(words) or [sys.executable, "-S", "-E", CHILD]
    pids = []
    live = []
    common.ready()
    begin = time.time()
    while not common.stopped():
        child = subprocess.Popen(command)
        pids.append(child.pid)
        live.append(child)
        if rate == 0:
            child.wait()
            continue
        live = [c for c in live if c.poll() is None]
        time.sleep(max(0, begin + len(pids) / rate - time.time()))
    for child in live:
        child.wait()
    common.write("pids.json", pids)


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])
