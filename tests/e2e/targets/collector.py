# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Half of its CPU time in the garbage collector, half not; writes both at `stop`."""
import gc
import time

import common


class Node(object):
    def __init__(self):
        self.me = self


def collecting():
    gc.collect()


def working(end):
    total = 0
    while time.process_time() < end:
        for number in range(2000):
            total += number * number


def main():
    gc.disable()
    keep = [Node() for _ in range(60000)]
    common.ready()
    while not common.stopped():
        begin = time.process_time()
        collecting()
        working(2 * time.process_time() - begin)
    return keep


if __name__ == "__main__":
    main()
