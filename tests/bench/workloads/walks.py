# SPDX-License-Identifier: BSD-2-Clause
"""walks.py deep|wide|cold   Works for 2 ms, wakes another process and waits for 0.5 ms, in turn, at
six lines, so that pyprofd takes each wait for a new one and walks its stack; deep: below 1,000
Python frames; wide: each time at the end of another chain of 20 out of 2,000 functions; cold: the
same, with 64 MiB read in between."""
import os
import random
import sys
import time

import common

DEEP, WIDE, CHAIN = 1000, 2000, 20
COLD_BYTES = 64 << 20


WAITS = [
    eval(compile("lambda sleep: sleep(0.0005)", "wait_%d.py" % number, "eval"))
    for number in range(6)
]


def start_sleeper():
    """Returns a descriptor: a process waits for each byte that is written there."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(reader)
        return writer
    os.close(writer)
    while os.read(reader, 1):
        pass
    os._exit(0)


def leaf():
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    os.write(SLEEPER, b"x")
    wait = WAITS.pop(0)
    WAITS.append(wait)
    wait(time.sleep)


def deep(left):
    if left:
        deep(left - 1)
        return
    while not common.stopped():
        leaf()


def functions():
    made = {}
    for number in range(WIDE):
        exec(compile("def wide_%d(chain):\n    (chain.pop() if chain else end)(chain)\n" % number,
                     "wide_%d.py" % (number % 200), "exec"), {"end": lambda chain: leaf()}, made)
    return list(made.values())


def wide(memory):
    made = functions()
    chance = random.Random(1)
    total = 0
    while not common.stopped():
        chain = [chance.choice(made) for _ in range(CHAIN)]
        chain.pop()(chain)
        for at in range(0, len(memory), 64 * 64):
            total += sum(memory[at:at + 4096:64])


def main():
    sys.setrecursionlimit(10 * DEEP)
    global SLEEPER
    SLEEPER = start_sleeper()
    common.ready()
    if sys.argv[1] == "deep":
        deep(DEEP)
    wide(bytes(COLD_BYTES if sys.argv[1] == "cold" else 0))


main()
