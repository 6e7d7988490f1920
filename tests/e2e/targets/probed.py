# SPDX-License-Identifier: BSD-2-Clause
"""probed.py MODE   Calls the library probed.c (libprobed.so in $LIBRARY or the directory) as
   rounds   three threads recurse 30 deep, and compute, sleep, or wait for a lock there
   tight    a thread for each of TIGHT, which calls nothing else; tight.json: their ids
   counts   from the file `go` on: LEAVES, RECURSIONS and TIMED calls, then the file `done`
   now      the same at once, and ends
   forks    in mid-call: children that end there, and such as execute another program
   calls    one call of probed_leaf each 0.1 ms, for as long as it runs; each round its length
counters.json: what the library counted.  3.8 and later."""
import ctypes
import os
import sys
import threading
import time

import common

LEAVES, RECURSIONS, DEEP, TIMED, TIMED_NS = 20000, 10, 30, 150, 4000000
TIGHT = ("probed_push", "probed_step", "probed_nop5")
library = ctypes.CDLL(os.path.join(os.environ.get("LIBRARY", common.DIRECTORY), "libprobed.so"))
library.probed_recurse.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64]
for name in ("probed_time", "probed_sleep", "probed_spin"):
    getattr(library, name).argtypes = [ctypes.c_uint64]
library.probed_init()


def compute():
    return library.probed_recurse(DEEP, ord("s"), 2000000)


def sleep():
    return library.probed_recurse(DEEP, ord("l"), 5000000)


def lock():
    return library.probed_recurse(DEEP, ord("o"), 5000000)


def again(function):
    while not common.stopped():
        function()


def tight(name, tids):
    tids[name] = threading.get_native_id()
    if len(tids) == len(TIGHT):
        common.write("tight.json", tids)
    again(lambda: library.probed_tight(getattr(library, name), 20000))


def run_threads(threads):
    for thread in threads:
        thread.start()
    common.ready()
    for thread in threads:
        thread.join()


def counter(name):
    return ctypes.c_uint64.in_dll(library, name).value


def leaves():
    library.probed_leaf_times(LEAVES)


def recursions():
    for _ in range(RECURSIONS):
        library.probed_recurse(DEEP, ord("s"), 1000)


def timed():
    for _ in range(TIMED):
        library.probed_time(TIMED_NS)


def all_counts():
    threads = [threading.Thread(target=f) for f in (leaves, recursions, timed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    common.write("counters.json", {
        "probed_" + name: counter("probed_" + name)
        for name in ("recursions", "leaves", "timed", "timed_ns")
    })


def end_in_mid_call(how):
    """A child that ends, or becomes another program, while its parent's call is under way."""
    CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

    def inside(_):
        pid = os.fork()
        if not pid:
            if how == "exit":
                os._exit(7)
            os.execv("/bin/true", ["true"])
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(
            os, "waitstatus_to_exitcode") else os.waitpid(pid, 0)[1] >> 8
    return library.probed_call(CALLBACK(inside))


def forks():
    common.write("counters.json", {"ends": [end_in_mid_call(how) for how in ("exit", "exec") * 20]})


def main():
    mode = sys.argv[1]
    if mode == "rounds":
        run_threads([threading.Thread(target=again, args=(f,), name=f.__name__)
                     for f in (compute, sleep, lock)])
    elif mode == "tight":
        tids = {}
        run_threads([threading.Thread(target=tight, args=(name, tids)) for name in TIGHT])
    elif mode == "calls":
        common.ready()
        while not common.stopped():
            began = time.perf_counter_ns()
            library.probed_leaf_times(1000)
            took = time.perf_counter_ns() - began
            common.write("round.json", {"ns": took / 1000, "calls": counter("probed_leaves")})
            time.sleep(0.05)
    else:
        common.ready()
        while mode != "now" and not os.path.exists(common.path("go")):
            time.sleep(0.01)
        forks() if mode == "forks" else all_counts()
        open(common.path("done"), "w").close()
        while mode != "now" and not common.stopped():
            time.sleep(0.01)


main()
