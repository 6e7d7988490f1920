# SPDX-License-Identifier: BSD-2-Clause
"""allocates.py WHAT   Waits for `begin`, allocates known amounts by function, and writes what it
has allocated and still holds to amounts.json; then waits for `stop`.
   once        so many of each size, of which some are kept
   threads     blocks that another thread frees, and blocks that are kept
   forks       a child that frees what it has inherited and ends, while the parent holds it
   fills       more blocks than pyprofd keeps in its table, none of which is touched
   hot         allocates and frees all the time: rounds.json is how many, and in which CPU time
"""
import ctypes
import os
import queue
import sys
import threading
import time

from common import path, ready, stopped, write

KEPT = []
amounts = {}


def add(name, size, count, held=0):
    entry = amounts.setdefault(name, [size, 0, 0])
    entry[1] += count
    entry[2] += held


def large():
    for _ in range(400):
        bytearray(1 << 20)
    add("large", 1 << 20, 400)


def medium():
    for _ in range(6000):
        bytearray(1 << 16)
    add("medium", 1 << 16, 6000)


def small():
    for _ in range(100000):
        bytearray(3000)
    add("small", 3000, 100000)


def leak():
    for _ in range(1500):
        KEPT.append(bytearray(100000))
    add("leak", 100000, 1500, 1500)


def once():
    large()
    medium()
    small()
    leak()


def handed_over(blocks):
    for _ in range(1000):
        blocks.put(bytearray(1 << 20))
    blocks.put(None)
    add("handed_over", 1 << 20, 1000)


def threads():
    blocks = queue.Queue(10)
    maker = threading.Thread(target=handed_over, args=[blocks])
    maker.start()
    while blocks.get() is not None:
        pass
    maker.join()
    leak()


def forks():
    leak()
    pid = os.fork()
    if not pid:
        time.sleep(2)  # probes of its own
        KEPT.clear()
        os._exit(0)
    os.waitpid(pid, 0)


FILLS = 70000


def fills():
    libc = ctypes.CDLL(None)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for _ in range(FILLS):
        libc.mmap(None, 4 << 20, 3, 0x4022, -1, 0)  # MAP_PRIVATE, _ANONYMOUS, _NORESERVE
    add("fills", 4 << 20, FILLS, FILLS)


def hot():
    rounds, begun = 0, time.process_time()
    while not stopped():
        for _ in range(100000):
            bytearray(600)
        rounds += 1
        write("rounds.json", [rounds, time.process_time() - begun])


def main():
    what = globals()[sys.argv[1]]
    if what is hot:
        ready()
        hot()
        return
    ready()
    while not os.path.exists(path("begin")) and not stopped():
        time.sleep(0.01)
    what()
    write("amounts.json", amounts)
    while not stopped():
        time.sleep(0.01)


if __name__ == "__main__":
    main()
