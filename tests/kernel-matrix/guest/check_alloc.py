# SPDX-License-Identifier: BSD-2-Clause
"""check_alloc.py PROFILE   Does it have each block that allocates.py made, and those it holds?"""
import sys

import allocates
import pprof

WANTED = {"make": (allocates.MADE, 0), "keep": (allocates.KEPT, allocates.KEPT)}
TOLERANCE = 0.01  # of bytes: malloc() is asked for a byte more, and for the list


def main(path):
    profile = pprof.load(path)
    types = [name for name, _ in profile.sample_types]
    columns = [types.index(name) for name in ("alloc_objects", "inuse_objects", "alloc_space",
                                              "inuse_space")]
    good = True
    for name, (made, held) in WANTED.items():
        got = [0] * len(columns)
        for sample in profile.samples:
            if sample.frames and any(f.name == name and f.kind == "python" for f in sample.frames):
                got = [a + sample.values[column] for a, column in zip(got, columns)]
        print("guest: alloc: %s: %d blocks of %d, %d held of %d, %.1f MiB, %.1f held"
              % (name, got[0], made, got[1], held, got[2] / 2**20, got[3] / 2**20))
        good &= got[:2] == [made, held]
        good &= all(abs(bytes_ - number * allocates.SIZE) <= TOLERANCE * number * allocates.SIZE
                    for bytes_, number in zip(got[2:], (made, held)))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
