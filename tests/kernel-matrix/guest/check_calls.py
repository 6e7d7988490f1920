# SPDX-License-Identifier: BSD-2-Clause
"""check_calls.py PROFILE   Does it have each call of counted.py?"""
import collections
import sys

import pprof

WANTED = {"tick": 1000, "down": 500}


def main(path):
    loaded = pprof.load(path)
    calls = collections.Counter()
    for sample in loaded.samples:
        calls[sample.frames[0].name] += sample.values[1]
    print("guest: calls: %s" % ", ".join("%s %d" % (name, calls[name]) for name in WANTED))
    costs = [c for c in loaded.comments if c.startswith("exact=calls ")]
    print("guest: " + (costs[0] if costs else "no costs"))
    return 0 if all(calls[name] == WANTED[name] for name in WANTED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
