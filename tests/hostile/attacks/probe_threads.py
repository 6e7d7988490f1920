# SPDX-License-Identifier: BSD-2-Clause
"""Ten thousand threads hit the probes of files that claim to be a CPython, all at once: each has
calls under way that never end."""
import os
import subprocess
import time

import craft

EVENTS = True
THREADS = 5000
KINDS = ("open", "nested")


def prepare(rig):
    home = rig.folder("attacker-65534", 65534)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe_storm.c")
    subprocess.check_call(["gcc", "-O1", "-pthread", "-o", os.path.join(home, "storm"), source])


def attack(box):
    craft.needs_x86()
    program = os.path.join(box.directory, "storm")
    for what in KINDS:
        if os.fork() == 0:
            os.execv(program, [program, what, str(THREADS)])
    time.sleep(2)
    box.ready()
    os.wait()
