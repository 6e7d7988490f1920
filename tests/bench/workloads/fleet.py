# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""fleet.py COUNT CORES [labels] [memory]   Starts COUNT Python programs that together keep CORES of
a core busy in short bursts; writes their pids to pids.json; they end at `stop`.  labels: each is a
rank of a job and has a service's name, one of eight.  memory: they collect cycles, and touch fresh
memory at every fourth burst."""
import os
import subprocess
import sys
import time

import common

BURST_S = 0.002


def fleet_hot(end):
    total = 0
    while time.process_time() < end:
        for number in range(400):
            total += number
    return total


def fleet_mid(end):
    return fleet_hot(end)


def fleet_cycles():
    for _ in range(100):
        cycle = []
        cycle.append(cycle)


def fleet_touch():
    return len(bytearray(150000))  # more than malloc keeps: its pages are new each time


def work(burst):
    fleet_cycles()
    if burst % 4 == 0:
        fleet_touch()


def member(duty, index, *how):
    # Spread over the period, so that the fleet does not work in step.
    time.sleep(index % 97 / 97.0 * min(2.0, BURST_S / duty))
    parent, burst = os.getppid(), index
    while not common.stopped() and os.getppid() == parent:
        end = time.process_time() + BURST_S
        burst += 1
        if "memory" in how:
            work(burst)
        fleet_mid(end)
        time.sleep(min(2.0, max(0.0, BURST_S / duty - BURST_S)))


def environment(count, index):
    return dict(os.environ, OTEL_SERVICE_NAME="service%d" % (index % 8), SLURM_JOB_ID="4711",
                RANK=str(index), LOCAL_RANK=str(index % 8), WORLD_SIZE=str(count))


def main(count, cores, *how):
    command = [sys.executable, "-S", "-E", os.path.abspath(__file__)]
    members = [
        subprocess.Popen(command + ["member", str(cores / count), str(i), *how],
                         env=environment(count, i) if "labels" in how else None)
        for i in range(count)
    ]
    common.write("pids.json", [m.pid for m in members])
    time.sleep(0.5)
    common.ready()
    for one in members:
        one.wait()


if __name__ == "__main__":
    if sys.argv[1] == "member":
        member(float(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        main(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
