# SPDX-License-Identifier: BSD-2-Clause
"""grown.py SECONDS SHARE   Keeps a CPU busy: scan() takes SHARE percent of the time, the other
functions share the rest as always, so that two runs differ in what they say and in nothing else.
The length of every call varies.  Prints what scan took."""
import random
import sys
import time


def scan(n):
    found = 0
    for i in range(n):
        found ^= i
    return found


def parse(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def table(n):
    rows = {}
    for i in range(n):
        rows[i & 255] = i
    return rows


def order(n):
    return sorted(range(n, 0, -1), key=lambda x: x ^ 5)


def text(n):
    return "".join(str(i) for i in range(n))


def rare(n):
    return list(range(n))


def others():
    parse(random.randrange(2000, 6000))
    table(random.randrange(500, 4000))
    order(random.randrange(500, 2500))
    text(random.randrange(500, 2500))
    if random.random() < 0.05:
        rare(random.randrange(10000))
    if random.random() < 0.01:
        text(random.randrange(100000))


def cost(function, *arguments):
    start = time.thread_time()
    function(*arguments)
    return time.thread_time() - start


def main():
    seconds, share = float(sys.argv[1]), float(sys.argv[2]) / 100
    end = time.monotonic() + seconds
    units, scanned, rest = 3000, cost(scan, 3000), cost(others)
    rounds = 1
    while time.monotonic() < end:
        # What an average round needs, from all rounds so far: caches and clocks change.
        size = rest / rounds * share / (1 - share) / (scanned / units)
        size = int(random.uniform(0.5, 1.5) * size)
        rest += cost(others)
        scanned += cost(scan, size)
        units += size
        rounds += 1
    print(f"scan: {scanned / (scanned + rest):.2%}", flush=True)


if __name__ == "__main__":
    main()
