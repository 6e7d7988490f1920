# SPDX-License-Identifier: BSD-2-Clause
"""The same sum three ways: values are added up by their index, in numpy and in Python.
$CASE_SECONDS of CPU time."""
import os
import time

import numpy

from clocks import say, timed

BINS = 1000


def by_loop(index, values):
    sums = [0.0] * BINS
    for i, value in zip(index, values):
        sums[i] += value
    return sums


def by_add_at(index, values):
    sums = numpy.zeros(BINS)
    numpy.add.at(sums, index, values)
    return sums


def by_bincount(index, values):
    return numpy.bincount(index, values, BINS)


def by_sort(index, values):
    order = numpy.argsort(index, kind="stable")
    edges = numpy.flatnonzero(numpy.diff(index[order], prepend=-1))
    return numpy.add.reduceat(values[order], edges)


def make(count):
    rng = numpy.random.default_rng(5)
    return rng.integers(0, BINS, count), rng.random(count)


def main(index, values):
    index_list, value_list = index.tolist(), values.tolist()
    end = time.process_time() + float(os.environ.get("CASE_SECONDS", 3))
    while time.process_time() < end:
        timed("by_loop", by_loop, index_list, value_list)
        for _ in range(8):
            timed("by_add_at", by_add_at, index, values)
        for _ in range(10):
            timed("by_bincount", by_bincount, index, values)
        timed("by_sort", by_sort, index, values)
    say()


if __name__ == "__main__":
    main(*make(100000))
