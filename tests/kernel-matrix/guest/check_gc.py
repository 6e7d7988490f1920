# SPDX-License-Identifier: BSD-2-Clause
"""check_gc.py PROFILE NUMBER   Are there so many collections, all of them at collects.py's line?"""
import os
import sys

import pprof

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "collects.py")


def main(path, number):
    line = [n for n, text in enumerate(open(SOURCE), 1) if "gc.collect()" in text]
    profile = pprof.load(path)
    types = [name for name, _ in profile.sample_types]
    got = elsewhere = pauses_ns = 0
    for sample in profile.samples:
        count, leaf = sample.values[types.index("collections")], sample.frames[0]
        pauses_ns += sample.values[types.index("gc_pause")]
        # By hand all generations are collected.
        if [leaf.line] == line and leaf.kind == "python" and sample.labels["generation"] == 2:
            got += count
        else:
            elsewhere += count
    print("guest: gc: %d collections of %d at line %d, %d elsewhere, %.1f ms each"
          % (got, number, line[0], elsewhere, pauses_ns / 1e6 / max(got, 1)))
    return 0 if (got, elsewhere) == (number, 0) and pauses_ns else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
