# SPDX-License-Identifier: BSD-2-Clause
"""A program to be profiled by two tools: few calls, each long, so that neither's cost per call
shows."""
import sys
import time


def profile(function):
    return function


if "LINES" in sys.argv:
    import line_profiler
    profile = line_profiler.LineProfiler()


def chunk(n):
    return sum(range(n))


@profile
def records(n):
    first = chunk(4 * n)
    second = chunk(2 * n)
    return first + second


def scatter(n):
    return sorted(range(n, 0, -1)) and chunk(3 * n)


def normalize(n):
    return max(range(n))


@profile
def work(n):
    records(n)
    scatter(n)
    normalize(n)
    return min(range(2 * n))


def main(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        work(60000)


if __name__ == "__main__":
    main(float(sys.argv[1]))
    if "LINES" in sys.argv:
        stats = profile.get_stats()
        for (_, _, name), lines in stats.timings.items():
            for line, _, ticks in lines:
                print(name, line, ticks * stats.unit)
