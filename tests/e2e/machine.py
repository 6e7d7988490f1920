# SPDX-License-Identifier: BSD-2-Clause
"""What the machine's CPUs did meanwhile.  Time that a hypervisor steals is in no clock of a
program, but a sample that was due meanwhile is the program's own."""
import collections
import os

Reading = collections.namedtuple("Reading", "busy_ns idle_ns stolen_ns")


def read():
    """All CPUs since boot, by /proc/stat."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, wait, irq, soft, stolen = [
            int(word) for word in file.readline().split()[1:9]
        ]
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    return Reading((user + nice + system + irq + soft) * tick_ns, (idle + wait) * tick_ns,
                   stolen * tick_ns)


def since(before):
    return Reading(*[b - a for a, b in zip(before, read())])


def stolen_part_ns(reading, cpu_ns):
    """Of what was stolen, the part of a program that took so much CPU time: time is stolen from
    CPUs that have something to run."""
    return reading.stolen_ns * min(1, cpu_ns / reading.busy_ns) if reading.busy_ns else 0
