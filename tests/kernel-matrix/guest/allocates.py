# SPDX-License-Identifier: BSD-2-Clause
"""Once /tmp/go is there, allocates known numbers of blocks, a function each; check_alloc.py knows
them.  Blocks of 8 MiB are all sampled (include/pyprofd/probe.h), so that numbers are exact."""
import os
import time

SIZE = 8 << 20
MADE, KEPT = 50, 10
held = []


def make():
    for _ in range(MADE):
        bytearray(SIZE)


def keep():
    for _ in range(KEPT):
        held.append(bytearray(SIZE))


def main():
    open("/tmp/allocates-ready", "w").close()
    while not os.path.exists("/tmp/go"):
        time.sleep(0.05)
    make()
    keep()
    open("/tmp/allocates-done", "w").close()
    time.sleep(1000)


if __name__ == "__main__":
    main()
