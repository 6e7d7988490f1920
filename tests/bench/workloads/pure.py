# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""pure.py ROUNDS   A fixed amount of pure Python: numbers, objects, dictionaries, recursion, 3 to
60 frames deep.  Waits for `go`; writes its CPU time to cpu.json.  ROUNDS 0: until `stop`."""
import os
import resource
import sys
import time

import common


class Body(object):
    def __init__(self, x, v):
        self.x, self.v = x, v

    def pull(self, other, step):
        distance = self.x - other.x
        self.v -= step * distance / (distance * distance + 0.1) ** 1.5

    def move(self, step):
        self.x += step * self.v


def bodies(count):
    everyone = [Body(float(i), 0.1 * i) for i in range(6)]
    for _ in range(count):
        for one in everyone:
            for other in everyone:
                if one is not other:
                    one.pull(other, 0.001)
        for one in everyone:
            one.move(0.001)
    return everyone


def words(count):
    counts = {}
    for i in range(count):
        key = "word-%d" % (i % 97)
        counts[key] = counts.get(key, 0) + len(key.split("-"))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def descend(depth):
    return sum(range(2000)) if depth == 0 else descend(depth - 1)


def one_round():
    bodies(500)
    words(12000)
    fibonacci(17)
    for _ in range(60):
        descend(60)


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(rounds):
    one_round()
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.002)
    begin, done = cpu_s(), 0
    while done < rounds if rounds else not common.stopped():
        one_round()
        done += 1
    common.write("cpu.json", {"cpu_s": cpu_s() - begin, "rounds": done})


if __name__ == "__main__":
    main(int(sys.argv[1]))
