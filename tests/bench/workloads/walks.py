# SPDX-License-Identifier: BSD-2-Clause
"""walks.py deep|wide|cold   Works for 2 ms and waits for 0.5 ms, in turn: deep: below 1,000 Python frames; wide: each
time at the end of another chain of 20 out of 2,000 functions; cold: the same, with 64 MiB read in between."""
import random
import sys
import time

import common

DEEP, WIDE, CHAIN = 1000, 2000, 20
COLD_BYTES = 64 << 20


def leaf():
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    time.sleep(0.0005)


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
    common.ready()
    if sys.argv[1] == "deep":
        deep(DEEP)
    wide(bytes(COLD_BYTES if sys.argv[1] == "cold" else 0))


main()
