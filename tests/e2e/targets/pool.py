# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""A multiprocessing pool of forked workers, made anew again and again."""
import multiprocessing
import os
import time

import common


def pool_leaf(end):
    total = 0
    while time.process_time() < end:
        for number in range(1000):
            total += number * number


def pool_task(_):
    pool_leaf(time.process_time() + 0.02)
    return os.getpid()


def main():
    context = multiprocessing.get_context("fork")
    pids = set()
    common.ready()
    while not common.stopped():
        with context.Pool(2) as pool:
            pids.update(pool.map(pool_task, range(20), chunksize=1))
    common.write("pids.json", sorted(pids))


if __name__ == "__main__":
    main()
