# SPDX-License-Identifier: BSD-2-Clause
"""Files that claim to be a CPython begin imports that never end, in ever new threads: the table of
what is under way would be theirs within seconds, and others' imports that take long not known."""
import os

import craft

PROGRAM = "probe_storm"
PROCESSES = 5
EVENTS = True
LONG_S = 8


def attack(box):
    craft.needs_x86()
    program = os.path.join(box.directory, PROGRAM)
    for _ in range(PROCESSES):
        if os.fork() == 0:
            os.execv(program, [program, "threads", "2"])
    box.ready()
    os.wait()


def check(rig):
    import re
    refused = re.search(r"([\d,]+) probe_share", rig.run.err)
    assert refused, "the attacker's share was not used up: %s" % rig.run.err
