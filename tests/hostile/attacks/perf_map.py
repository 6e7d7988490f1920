# SPDX-License-Identifier: BSD-2-Clause
"""Perf maps: of 1 GiB that is one hole, of 60 MiB with millions of lines, one with a line of 60
MiB, one that is a link to a file of root's, one that is written to all the time, and one whose
ranges all overlap."""
import os
import time

import craft

PAGE, MIB = craft.PAGE, 1 << 20
KINDS = 6


def make(kind, path, at, secret):
    if kind == 3:
        os.symlink(secret, path)
        return None
    file = open(path, "wb")
    if kind == 0:
        file.truncate(1 << 30)
    elif kind == 1:
        line = b"%x 10 a\n"
        file.write(b"".join(line % (at - (1 << 30) + 16 * i) for i in range(60 * MIB // 14)))
    elif kind == 2:
        file.write(b"%x 1000 " % at + b"n" * (60 * MIB))
    elif kind == 5:
        file.write(b"".join(b"%x %x over%d\n" % (at - i, PAGE + 2 * i, i) for i in range(300000)))
    file.flush()
    return file


def attack(box):
    craft.needs_x86()
    for kind in range(KINDS):
        if os.fork():
            continue
        path = craft.perf_map()
        at = craft.anonymous()
        craft.write_at(at, craft.BURN)
        file = make(kind, path, at, box.secret)
        while True:
            if kind == 4:
                file.write(b"".join(
                    b"%x 10 grown%d\n" % (at + 16 * i % PAGE, i) for i in range(1000)))
                file.flush()
            craft.call(at)
            time.sleep(0.01)
    time.sleep(1)
    box.ready()
    os.wait()


def check(rig):
    assert "perf_maps_refused" in rig.run.err, rig.run.err
