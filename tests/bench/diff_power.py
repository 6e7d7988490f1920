#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""diff_power.py   What `pyprof diff` can see, simulated: a function that grows from 10 to 15 %, 12
windows a side.

Two ways to rank a window for Mann-Whitney's U: by the share, and by what lies above the share of
both sides together. Found is p < 0.05 / TESTS: what Holm's correction asks of the smallest p.
"""
import math
import random

RUNS, WINDOWS, TESTS = 1000, 12, 40
WAYS = {"shares": lambda x, w, p: x / w, "above": lambda x, w, p: x - p * w}


def chances():
    """P(U <= u) of all orders of WINDOWS and WINDOWS values."""
    ways = [[1] + [0] * WINDOWS ** 2] + [[0] * (WINDOWS ** 2 + 1) for _ in range(WINDOWS)]
    for i in range(2 * WINDOWS):
        for k in range(min(i + 1, WINDOWS), max(0, i - WINDOWS), -1):
            gain = i + 1 - k
            ways[k] = [
                n + (ways[k - 1][u - gain] if u >= gain else 0) for u, n in enumerate(ways[k])
            ]
    total = math.comb(2 * WINDOWS, WINDOWS)
    assert sum(ways[WINDOWS]) == total
    return [sum(ways[WINDOWS][:u + 1]) / total for u in range(WINDOWS ** 2 + 1)]


def p_of(a, b, below):
    u = sum(x > y if x != y else random.random() < 0.5 for x in a for y in b)
    return min(1, 2 * below[min(u, WINDOWS ** 2 - u)])


def side(share, samples, cov):
    windows = []
    for _ in range(WINDOWS):
        size = max(5, round(random.gauss(samples, cov * samples)))
        windows.append((sum(random.random() < share for _ in range(size)), size))
    return windows


def part(shares, samples, cov, below, p):
    hits = dict.fromkeys(WAYS, 0)
    for _ in range(RUNS):
        a, b = (side(share, samples, cov) for share in shares)
        pooled = sum(x for x, _ in a + b) / sum(w for _, w in a + b)
        for name, rank in WAYS.items():
            hits[name] += p_of(*([rank(x, w, pooled) for x, w in one] for one in (a, b)), below) < p
    return "  ".join(f"{name} {count / RUNS:6.1%}" for name, count in hits.items())


def main():
    random.seed(1)
    below = chances()
    for samples, cov in ((495, 0.02), (250, 0.3), (250, 0.6), (170, 0.6)):
        print(
            f"{samples} samples a window, CoV {cov:.0%}: found: "
            f"{part((.10, .15), samples, cov, below, .05 / TESTS)}"
            f"; p < 0.05 without a change: {part((.10, .10), samples, cov, below, .05)}",
            flush=True)


if __name__ == "__main__":
    main()
