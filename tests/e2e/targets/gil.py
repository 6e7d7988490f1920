# SPDX-License-Identifier: BSD-2-Clause
"""gil.py MODE   Threads that wait for the GIL, with the truth by their own clocks in gil.json.  3.8
and later."""
import ctypes
import functools
import os
import sys
import threading
import time

import common

THREADS = 4
SECONDS = 3
LATE_NS = 50000
pread = ctypes.PyDLL(None).pread  # keeps the GIL, unlike os.pread()


class Bracket:
    """How long this thread waits between two readings of its clocks: not on the CPU, nor for one.

    A call of C code lets go of the GIL, when it is asked to, after it has its result: a wait right
    behind a stamp would be in the bracket.  The next value of an iterator is fetched without that.
    A reading in which the thread lost its CPU is repeated."""

    def __init__(self):
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.room = ctypes.create_string_buffer(80), ctypes.create_string_buffer(80)
        delay = [functools.partial(pread, fd, room, 79, 0) for room in self.room]
        now, cpu = time.monotonic_ns, time.thread_time_ns
        self.begin = zip(*(iter(f, None) for f in (now, delay[0], cpu, now)))
        self.end = zip(*(iter(f, None) for f in (now, cpu, delay[1], now)))
        self.waited_ns = 0

    def around(self, function, *args):
        for early, size_0, cpu_0, time_0 in self.begin:
            break
        if time_0 - early > LATE_NS:
            for early, size_0, cpu_0, time_0 in self.begin:
                break
        function(*args)
        for time_1, cpu_1, size_1, late in self.end:
            break
        if late - time_1 > LATE_NS:
            for time_1, cpu_1, size_1, late in self.end:
                break
        delay_0, delay_1 = (int(room.raw[:size].split()[1])
                            for room, size in zip(self.room, (size_0, size_1)))
        self.waited_ns += time_1 - time_0 - (cpu_1 - cpu_0) - (delay_1 - delay_0)


def dot(a, b, c):
    for i in range(len(a)):
        c[i] = a[i] * b[i]


def outside(count):
    total = 0
    for i in range(count):
        total += i
    return total


def share_thread(in_dot):
    a, b, c = list(range(30000)), list(range(30000)), [0] * 30000
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        in_dot.around(dot, a, b, c)
        outside(30000)


def measure_thread(results):
    in_dot, everywhere = Bracket(), Bracket()
    everywhere.around(share_thread, in_dot)
    results.append({"in_dot_ns": in_dot.waited_ns, "all_ns": everywhere.waited_ns})


def share():
    results = []
    threads = [threading.Thread(target=measure_thread, args=(results,)) for _ in range(THREADS)]
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
sys.path.insert(0, {directory!r})
os.environ["E2E_DIR"] = {directory!r}
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
    thread = threading.Thread(target=run,
                              args=(create(), INSIDE.format(directory=common.DIRECTORY)))
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
