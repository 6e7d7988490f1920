# SPDX-License-Identifier: BSD-2-Clause
"""lives.py MODE   Threads that sleep through windows, exits and execs; many short threads; two
processes that share a CPU."""
import os
import sys
import threading
import time

import common


def nap(seconds):
    time.sleep(seconds)  # L:nap


def rest(seconds):
    time.sleep(seconds)  # L:rest


def start(function, *args, **more):
    thread = threading.Thread(target=function, args=args, daemon=True, **more)
    thread.start()
    return thread


def sleeper():
    """One sleep as soon as somebody looks, to the end of the process."""
    common.write("tid.json", threading.get_native_id())
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    nap(3600)


def long():
    start(sleeper, name="the-sleeper")
    while not common.stopped():
        time.sleep(0.02)
    os._exit(0)


def exits():
    """Ends while threads are asleep."""
    for number in range(4):
        start(nap, 3600, name="asleep-%d" % number)
    time.sleep(1)
    common.write("ended.json", time.time_ns())
    os._exit(0)


def replace():
    common.write("ended.json", time.time_ns())
    os.execv(sys.executable, [sys.executable, __file__, "rest"])


def execs():
    """The same process becomes another program, while a thread is asleep."""
    start(nap, 3600, name="asleep-0")
    time.sleep(1)
    replace()


def delayed_replace():
    time.sleep(1)
    replace()


def thread_execs():
    """The same, by another thread than the first one, which is asleep."""
    start(delayed_replace)
    nap(3600)


def churn():
    """1,000 threads of about 5 ms, 10 at a time."""
    asleep = []
    threading.stack_size(256 << 10)

    def short():
        begin = time.monotonic_ns()
        nap(0.005)
        asleep.append(time.monotonic_ns() - begin)

    for _ in range(100):
        for thread in [start(short) for _ in range(10)]:
            thread.join()
    common.write("churn.json", {"asleep_ns": sum(asleep), "count": len(asleep)})


def turns():
    """Two processes that compute on one CPU."""
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    child = os.fork()
    if child:
        common.write("turns.json", [os.getpid(), child])
        common.ready()
    total = 0
    while not common.stopped():
        for number in range(100000):  # L:turns
            total += number


def main():
    mode = sys.argv[1]
    if mode == "rest":
        rest(1)
        os._exit(0)
    globals()[mode]()


if __name__ == "__main__":
    main()
