# SPDX-License-Identifier: BSD-2-Clause
"""Makes a known number of calls once /tmp/calls-go is there."""
import os
import time


def tick():
    pass


def down(n):
    if n:
        down(n - 1)


def main():
    open("/tmp/calls-ready", "w").close()
    while not os.path.exists("/tmp/calls-go"):
        time.sleep(0.05)
    for _ in range(1000):
        tick()
    for _ in range(100):
        down(4)
    open("/tmp/calls-done", "w").close()
    time.sleep(600)


main()
