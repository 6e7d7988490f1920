# SPDX-License-Identifier: BSD-2-Clause
"""gil.py MODE   Threads that wait for the GIL, with the truth by their own clocks in gil.json.  3.8 and later."""
import ctypes
import os
import sys
import threading
import time

import common

THREADS = 4
SECONDS = 5
pread = ctypes.PyDLL(None).pread  # keeps the GIL, unlike os.pread()


class Clocks:
    """This thread's; reading them gives up no GIL."""

    def __init__(self):
        self.fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.room = ctypes.create_string_buffer(80)

    def used_ns(self):
        """On the CPU, and waiting for one."""
        size = pread(self.fd, self.room, 79, 0)
        return time.thread_time_ns() + int(self.room.raw[:size].split()[1])


def dot(a, b, c):
    for i in range(len(a)):
        c[i] = a[i] * b[i]


def outside(count):
    total = 0
    for i in range(count):
        total += i
    return total


def share_thread(results):
    """What this thread waits in dot(), and in all.

    A call of C code asks for the GIL's release after it has its result: a wait right behind a stamp is
    in the bracket that the stamp opens.  Two stamps in a row tell how long such waits are."""
    clocks = Clocks()
    a, b, c = list(range(3000)), list(range(3000)), [0] * 3000
    in_dot = extra = 0
    all_begin, all_used = time.monotonic_ns(), clocks.used_ns()
    end = all_begin + SECONDS * 10**9
    while True:
        used = clocks.used_ns()
        first = time.monotonic_ns()
        second = time.monotonic_ns()
        dot(a, b, c)
        third = time.monotonic_ns()
        in_dot += third - second - (clocks.used_ns() - used)
        extra += second - first
        outside(4000)
        if third > end:
            break
    everything = time.monotonic_ns() - all_begin - (clocks.used_ns() - all_used)
    results.append({"in_dot_ns": in_dot - extra, "all_ns": everything})


def share():
    results = []
    threads = [threading.Thread(target=share_thread, args=(results,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    common.write("gil.json", {key: sum(r[key] for r in results) for key in results[0]})


def hold(numbers):
    sum(numbers)  # L:hold


def holder():
    numbers = range(3000000)
    while not common.stopped():
        hold(numbers)


def waiter():
    while not common.stopped():
        time.sleep(0.001)


def blame():
    threads = [threading.Thread(target=holder, name="holder")]
    threads += [threading.Thread(target=waiter, name="waiter-%d" % i) for i in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    common.ready()
    for thread in threads:
        thread.join()


def held():
    """One thread computes with the GIL, one without."""
    import hashlib
    tids = {}

    def with_it():
        tids["with"] = threading.get_native_id()
        while not common.stopped():
            outside(100000)

    def without():
        tids["without"] = threading.get_native_id()
        block = b"x" * (1 << 22)
        while not common.stopped():
            hashlib.sha256(block).digest()

    threads = [threading.Thread(target=f) for f in (with_it, without)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    common.write("tids.json", tids)
    common.ready()
    for thread in threads:
        thread.join()


INSIDE = """
import os, sys, threading
sys.path.insert(0, {folder!r})
os.environ["E2E_DIR"] = {folder!r}
import common
tids = []
def inside():
    tids.append(threading.get_native_id())
    total = 0
    while not common.stopped():
        for i in range(100000):
            total += i
threads = [threading.Thread(target=inside) for _ in range(2)]
for thread in threads:
    thread.start()
while len(tids) < 2:
    pass
common.write("inside.json", tids)
for thread in threads:
    thread.join()
"""


def subinterpreter():
    """Two threads share the GIL of another interpreter; the main one's thread has its own."""
    import subinterpreters
    create, run = subinterpreters.api()
    thread = threading.Thread(target=run, args=(create(), INSIDE.format(folder=common.FOLDER)))
    thread.start()
    common.write("main.json", threading.get_native_id())
    while not os.path.exists(common.path("inside.json")):
        time.sleep(0.01)
    common.ready()
    while not common.stopped():
        outside(100000)
    thread.join()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
