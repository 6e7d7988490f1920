# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""deep.py DEPTH [cb]   Works below so many frames; with cb every level goes through C."""
import sys
import threading

import common


def deep_leaf():
    total = 0
    while not common.stopped():
        for number in range(50000):
            total += number * number


def deep_call(depth):
    if depth <= 1:
        return deep_leaf()
    return deep_call(depth - 1)


def deep_callback(depth):
    if depth <= 1:
        return deep_leaf()
    return sorted([0], key=lambda _: deep_callback(depth - 1))


def main():
    depth = int(sys.argv[1])
    sys.setrecursionlimit(depth * 4 + 1000)
    common.ready()
    (deep_callback if "cb" in sys.argv else deep_call)(depth)


def in_thread():
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()


if __name__ == "__main__":
    in_thread() if "thread" in sys.argv else main()
