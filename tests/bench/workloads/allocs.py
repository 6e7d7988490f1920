# SPDX-License-Identifier: BSD-2-Clause
"""allocs.py WHAT SECONDS   Allocates for so long, and prints the CPU time of 1,000 rounds in ms.
   arrays   blocks of 8 MiB that are filled
   blocks   2,000 blocks of 600 bytes a round, 500,000 a second where the CPU is fast enough
"""
import sys
import time

BLOCKS = 2000


def arrays():
    for _ in range(4):
        memoryview(bytearray(8 << 20))[::64].tolist()


def blocks():
    # A quarter of the time without the pause is spent in malloc and free.
    for _ in range(BLOCKS):
        bytearray(600)
    sum(range(60000))


def main():
    round_of, end = globals()[sys.argv[1]], time.monotonic() + float(sys.argv[2])
    rounds, begun = 0, time.process_time()
    while time.monotonic() < end:
        round_of()
        rounds += 1
    print("%.3f" % ((time.process_time() - begun) / rounds * 1e6))


if __name__ == "__main__":
    main()
