# SPDX-License-Identifier: BSD-2-Clause
"""A pipeline: two sets of records are read, put in order and paired by their key.  $CASE_SECONDS of
CPU time."""
import os
import random
import time

from clocks import say, timed


def make(count, side, rng):
    keys = list(range(count))
    rng.shuffle(keys)
    return ["id%06d/%s\t%d\t%s" % (key, side, key * 7, "ACGT" * 20) for key in keys]


def parse(lines):
    records = []
    for line in lines:
        name, position, bases = line.split("\t")
        records.append((name.partition("/")[0], int(position), bases))
    return records


def distance(left, right):
    same = 0
    for a, b in zip(left, right):
        if a == b:
            same += 1
    return same


def by_key(records):
    return {record[0]: record for record in records}


def pair(left, right):
    found = by_key(right)
    return [(one, found[one[0]]) for one in left if one[0] in found]


def score(pairs):
    return [distance(one[2], two[2]) for one, two in pairs]


def write(pairs):
    return "\n".join("\t".join((one[0], str(one[1]), str(two[1]))) for one, two in sorted(pairs))


def main():
    rng = random.Random(7)
    first, second = make(4000, "1", rng), make(4000, "2", rng)
    end = time.process_time() + float(os.environ.get("CASE_SECONDS", 3))
    while time.process_time() < end:
        left = timed("parse", parse, first)
        right = timed("parse", parse, second)
        pairs = timed("pair", pair, left, right)
        timed("score", score, pairs[:1000])
        timed("write", write, pairs)
    say()


if __name__ == "__main__":
    main()
