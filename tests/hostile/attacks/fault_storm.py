# SPDX-License-Identifier: BSD-2-Clause
"""Hundreds of thousands of page faults a second: new memory, copies on write beside a thread whose
mappings change under its faults, and ten thousand threads that fault at once."""
import os

import craft  # noqa: F401

EVENTS = True
KINDS = (("new", 1), ("copies", 1), ("changes", 4), ("new", 5000))


def attack(box):
    program = os.path.join(box.directory, "fault_storm")
    for what, threads in KINDS:
        if os.fork() == 0:
            os.execv(program, [program, what, str(threads)])
    box.ready()
    os.wait()


def check(rig):
    import events  # not there for who attacks
    faults = events.total(rig, "mem", "faults")
    print("%.0f faults a second" % (faults / (rig.ended - rig.began)))
