# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""moving.py DEPTH   Goes down so many levels and back again, by one line and by another in turn: a
stack that holds both never was."""
import sys

import common


def work():
    total = 0
    for number in range(200):
        total += number * number


def descend(is_first, depth):
    if depth <= 1:
        return work()
    if is_first:
        return descend(is_first, depth - 1)  # first
    return descend(is_first, depth - 1)  # second


def main():
    depth = int(sys.argv[1])
    sys.setrecursionlimit(depth * 2 + 1000)
    common.ready()
    while not common.stopped():
        for _ in range(100):
            descend(True, depth)
            descend(False, depth)


if __name__ == "__main__":
    main()
