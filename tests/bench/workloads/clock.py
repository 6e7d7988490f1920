# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Always runs in a function named after the clock: at_123 during the 123rd hundredth of a second
(of ten, CLOCK_MONOTONIC), so that a stack's name says when it was taken."""
import time

import common

SLOTS = 1000
SLOT_S = 0.01
SOURCE = """
def at_%d(clock, end):
    total = 0
    while clock() < end:
        for number in range(200):
            total += number
    return total
"""


def main():
    functions = []
    for slot in range(SLOTS):
        names = {}
        exec(compile(SOURCE % slot, "<clock>", "exec"), names)
        functions.append(names["at_%d" % slot])
    common.ready()
    while not common.stopped():
        slot = int(time.monotonic() / SLOT_S)
        functions[slot % SLOTS](time.monotonic, (slot + 1) * SLOT_S)


if __name__ == "__main__":
    main()
