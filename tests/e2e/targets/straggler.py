# SPDX-License-Identifier: BSD-2-Clause
"""A pool of three workers; one of them has four times as much to do.  $CASE_SECONDS of CPU time in
all."""
import json
import multiprocessing
import os
import time
import zlib

SHARES = (4, 1, 1)
DATA = bytes(range(256)) * 400


def crunch(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def pack(times):
    return [len(zlib.compress(DATA, 6)) for _ in range(times)]


def item(seconds):
    spent = {"crunch": 0, "pack": 0, "item": 0}
    begin = time.thread_time_ns()
    while spent["item"] < seconds * 1e9:
        at = time.thread_time_ns()
        crunch(50000)
        between = time.thread_time_ns()
        pack(4)
        spent["crunch"] += between - at
        spent["pack"] += time.thread_time_ns() - between
        spent["item"] = time.thread_time_ns() - begin
    return spent


def main():
    seconds = float(os.environ.get("CASE_SECONDS", 3))
    with multiprocessing.get_context("fork").Pool(len(SHARES)) as pool:
        found = pool.map(item, [seconds * share / sum(SHARES) for share in SHARES], chunksize=1)
    truth = {name: sum(spent[name] for spent in found) for name in found[0]}
    print("TRUTH " + json.dumps(dict(truth, processes=[spent["item"] for spent in found])),
          flush=True)


if __name__ == "__main__":
    main()
