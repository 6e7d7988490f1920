# SPDX-License-Identifier: BSD-2-Clause
"""check_lines.py PROFILE   Does it have each line of counted.py?"""
import collections
import os
import sys

import pprof

WANTED = {"    pass": 1000, "    if n:": 500, "        down(n - 1)": 400}


def main(path):
    loaded = pprof.load(path)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counted.py")
    with open(source, encoding="utf-8") as file:
        text = file.read().splitlines()
    hits = collections.Counter()
    for sample in loaded.samples:
        hits[text[sample.frames[0].line - 1]] += sample.values[0]
    print("guest: lines: %s" % ", ".join("%s %d" % (line.strip(), hits[line]) for line in WANTED))
    costs = [c for c in loaded.comments if c.startswith("exact=lines ")]
    print("guest: " + (costs[0] if costs else "no costs"))
    return 0 if all(hits[line] == WANTED[line] for line in WANTED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
