#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reader_windows.py OUT COUNT [SOURCE...]   A store of COUNT windows; 3,600 have about 100 MB.

Each window takes one of the SOURCEs (pprof files of ten seconds) and leaves out a third of its
samples, chosen by chance, so that no two are alike; the times go on by ten seconds.  The layout is
that of pyprofd's store.  Without SOURCEs they come from made_window.py, the same ones each time.
"""
import gzip
import os
import random
import sys
import time

from made_window import make, varint

SAMPLE, TIME_NS, DURATION_NS = 2, 9, 10
WINDOW_MS = 10000
KEPT = 0.67


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def split(data):
    """(samples, the rest) as raw fields."""
    samples, rest, at = [], [], 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        if tag & 7 == 2:
            size, at = read_varint(data, at)
            at += size
        else:
            _, at = read_varint(data, at)
        if tag >> 3 == SAMPLE:
            samples.append(data[begin:at])
        elif tag >> 3 not in (TIME_NS, DURATION_NS):
            rest.append(data[begin:at])
    return samples, b"".join(rest)


def write(out, count, sources):
    """Returns the bytes of all."""
    rng = random.Random(1)
    sources = [split(source) for source in sources]
    start_ms, total = 1795200000000, 0
    for i in range(count):
        samples, rest = sources[i % len(sources)]
        at_ms = start_ms + i * WINDOW_MS
        body = b"".join(s for s in samples if rng.random() < KEPT) + rest
        body += varint(TIME_NS << 3) + varint(at_ms * 1000000)
        body += varint(DURATION_NS << 3) + varint(WINDOW_MS * 1000000)
        parts = time.gmtime(at_ms / 1000)
        directory = os.path.join(out, time.strftime("%Y-%m-%d/%H", parts))
        os.makedirs(directory, exist_ok=True)
        packed = gzip.compress(body, 1)
        total += len(packed)
        with open(os.path.join(directory, "%d-%d-cpu.pb.gz" % (at_ms, WINDOW_MS)), "wb") as file:
            file.write(packed)
    return total


def main():
    out, count, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    sources = [gzip.open(path).read() for path in paths] or make()
    print("%d windows, %.1f MB" % (count, write(out, count, sources) / 1e6))


if __name__ == "__main__":
    main()
