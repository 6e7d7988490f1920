# SPDX-License-Identifier: BSD-2-Clause
"""pingpong.py   Two processes of CPython on one CPU that hand a byte to and fro over pipes, until
SIGTERM; then prints, as switches.c does, for each part of some ms when it ended (CLOCK_MONOTONIC,
ns) and how long a switch took (ns)."""
import os
import signal
import sys
import time

PART = 250  # rounds: some ms; a round is two switches


def answer(source, target):
    while os.read(source, 1):
        os.write(target, b"b")


def ask(source, target):
    for _ in range(PART):
        os.write(target, b"a")
        os.read(source, 1)


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    (theirs, there), (ours, back) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(there)
        answer(theirs, back)
        os._exit(0)
    over, parts = [], []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    begin = time.monotonic_ns()
    while not over:
        ask(ours, there)
        end = time.monotonic_ns()
        parts.append((end, (end - begin) / PART / 2))
        begin = end
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    sys.stdout.write("".join("%d %.1f\n" % part for part in parts))


main()
