# SPDX-License-Identifier: BSD-2-Clause
"""Native recursion of 100,000 levels and Python's of 10,000, which works and sleeps all the way
up."""
import os
import sys
import threading
import time

import craft  # noqa: F401

NATIVE, PYTHON = 100000, 10000
# Threads that sleep by short timers wake just after the timer that samples: programs that only do
# that, with shallow stacks, are seen for 57 to 78 % of their CPU time, and those beside them for up
# to 14 % too much.
TIME_HIGH = 1.2


def attack(box):
    for _ in range(2):
        if os.fork() == 0:
            os.execv(os.path.join(box.directory, "deep_stacks"), ["deep_stacks", str(NATIVE)])
    sys.setrecursionlimit(PYTHON + 100)
    threading.stack_size(512 << 20)

    def deeper(left):
        if left:
            deeper(left - 1)
        if left % 100 == 0:
            sum(range(5000))
            time.sleep(0.0001)

    def run():
        while True:
            deeper(PYTHON)
    threading.Thread(target=run, daemon=True).start()
    box.ready()
    time.sleep(60)
