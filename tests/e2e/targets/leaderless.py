# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""The main thread ends, the others go on: at once, or when `leave` appears."""
import ctypes
import mmap
import os
import sys
import threading
import time

import common


def even():
    total = 0
    for number in range(20000):
        total += number * number
    return total


def odd():
    total = 0
    for number in range(20000):
        total += number * number
    return total


def spin(work):
    while not common.stopped():
        for _ in range(20):
            work()


def load_later():
    """Maps a file that nobody has mapped before: only a live thread's /proc tells its name."""
    while not os.path.exists(common.path("load")):
        time.sleep(0.02)
    import _decimal
    # One call is shorter than the switch interval of 5 ms: it holds the GIL, and the others want
    # their share.
    while not common.stopped():
        _decimal.Decimal(2).ln(_decimal.Context(prec=300))


def main():
    threads = {"even": lambda: spin(even), "odd": lambda: spin(odd), "loader": load_later}
    for name, target in threads.items():
        threading.Thread(target=target, name=name).start()
    if "--at-once" not in sys.argv:
        common.ready()
        while not os.path.exists(common.path("leave")):
            time.sleep(0.02)

    def tell():
        while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        common.write("left.json", os.getpid())
        if "--at-once" in sys.argv:
            common.ready()
    threading.Thread(target=tell, name="teller").start()
    ctypes.CDLL(None).pthread_exit(None)


if __name__ == "__main__":
    main()
