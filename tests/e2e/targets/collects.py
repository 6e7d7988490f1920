# SPDX-License-Identifier: BSD-2-Clause
"""From the file `go` on: collections of each generation, some that garbage causes, timed by
gc.callbacks.  collects.json: [[generation, ns]].  3.6 and later."""
import gc
import os
import time

import common

began = [0]
found = []
gc.disable()


def on_collection(phase, info):
    if phase == "start":
        began[0] = time.perf_counter()
    else:
        found.append([info["generation"], int((time.perf_counter() - began[0]) * 1e9)])


class Node:
    def __init__(self, other):
        self.other = other


def cycles(count):
    for _ in range(count):
        one = Node(None)
        one.other = Node(one)


def by_hand():
    for generation in (0, 1, 2, 2, 2):
        cycles(20000)
        gc.collect(generation)


def by_garbage():
    gc.enable()
    cycles(30000)
    gc.disable()


def main():
    kept = [Node(None) for _ in range(200000)]  # so that a collection takes some ms
    common.ready()
    while not os.path.exists(common.path("go")) and not common.stopped():
        time.sleep(0.01)
    gc.callbacks.append(on_collection)
    for _ in range(4):
        by_hand()
    by_garbage()
    gc.callbacks.remove(on_collection)
    common.write("collects.json", {"collections": found, "kept": len(kept)})
    open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.01)


main()
