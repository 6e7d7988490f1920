# SPDX-License-Identifier: BSD-2-Clause
"""What pyprofd's maps take of the kernel's memory, as the kernel accounts it."""
import os
import signal
import time

import harness

MIB = 1 << 20
WANTED_MIB = 40  # up to 4 CPUs, however many may come


def maps_bytes(pid):
    """Sum over the maps that a process holds open, each once."""
    found = {}
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii", errors="replace") as file:
                told = dict(line.split(":", 1) for line in file if ":" in line)
        except FileNotFoundError:  # it was no map
            continue
        if "map_id" in told:
            found[int(told["map_id"])] = int(told["memlock"])
    assert len(found) > 20, found
    return sum(found.values())


def settled_maps_bytes(pid, limit_s=30):
    """Objects of their own are loaded beside the loop."""
    end, last = time.monotonic() + limit_s, -1
    while True:
        took = maps_bytes(pid)
        if took == last or time.monotonic() > end:
            return took
        last = took
        time.sleep(2)


def test_maps_of_the_default_mode():
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    harness.need(cpus <= 4, "%d CPUs: the bound is for 4" % cpus)
    with harness.light():
        process = harness.start(harness.temporary() + "/", hz=None)
        harness.sampling(process)
        took = settled_maps_bytes(process.pid)
        run = harness.finish(process, signal_number=signal.SIGINT)
    assert took <= WANTED_MIB * MIB, "%.1f MiB of maps" % (took / MIB)
    assert "+ %.1f MiB of maps" % (took / MIB) in run.err, (took, run.err)
