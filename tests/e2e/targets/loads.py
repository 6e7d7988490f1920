# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Loads a native library when `go` appears, long after its start, and works in it."""
import os
import time

import common


def before_loading():
    total = 0
    for number in range(50000):
        total += number * number


def in_library():
    import lzma
    data = os.urandom(1 << 15) * 8
    while not common.stopped():
        lzma.compress(data, preset=6)


def main():
    common.ready()
    while not os.path.exists(common.path("go")) and not common.stopped():
        before_loading()
    in_library()


if __name__ == "__main__":
    main()
