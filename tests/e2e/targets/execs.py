# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Works, then replaces itself by another program (or by sys.argv[1:]) that works, in turns."""
import os
import sys
import time

import common


def work_of_turn(end):
    total = 0
    while time.process_time() < end:
        for number in range(1000):
            total += number * number


def even_turn(end):
    work_of_turn(end)


def odd_turn(end):
    work_of_turn(end)


def main(turn):
    common.ready()
    (odd_turn if turn % 2 else even_turn)(time.process_time() + 0.2)
    if not common.stopped():
        os.execv(sys.executable,
                 [sys.executable, "-S", "-E",
                  os.path.abspath(__file__),
                  str(turn + 1)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
