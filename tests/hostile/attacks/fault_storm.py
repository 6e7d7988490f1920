# SPDX-License-Identifier: BSD-2-Clause
"""Hundreds of thousands of page faults a second: new memory, copies on write beside a thread whose
mappings change under its faults, and ten thousand threads that fault at once."""
import os
import time

import craft  # noqa: F401

EVENTS = True
KINDS = (("zeros", 2), ("new", 1), ("copies", 1), ("changes", 4), ("new", 5000))


def attack(box):
    program = os.path.join(box.directory, "fault_storm")
    for what, threads in KINDS:
        if os.fork() == 0:
            os.execv(program, [program, what, str(threads)])
    box.ready()
    os.wait()


def faults():
    with open("/proc/vmstat", encoding="ascii") as file:
        return int(file.read().split("\npgfault ")[1].split()[0])


def meanwhile(rig):
    before, began = faults(), time.monotonic()
    time.sleep(3)
    rig.faults_a_second = (faults() - before) / (time.monotonic() - began)


def check(rig):
    import events  # not there for who attacks
    counted = events.total(rig, "mem", "faults") / (rig.ended - rig.began)
    print("%.0f faults a second, %.0f with a page are counted" % (rig.faults_a_second, counted))
