# SPDX-License-Identifier: BSD-2-Clause
"""No attack by a file that we know: root kills the child that parses files again and again, as a
file would that it does not survive.  Programs keep their stacks, and new ones get theirs."""
import os
import signal
import threading
import time

import craft  # noqa: F401

QUICK = True
SECONDS = 4
OPTIONS = ("--verbose",)
CHILD = "pyprofd: files"
KILLS = []


def child_of(agent):
    with open("/proc/%d/task/%d/children" % (agent, agent), encoding="ascii") as file:
        for pid in file.read().split():
            with open("/proc/%s/comm" % pid, encoding="ascii") as comm:
                if comm.read().strip() == CHILD:
                    return int(pid)
    return None


def kill_often(agent):
    """Not more often than the agent starts children."""
    while os.path.exists("/proc/%d" % agent):
        try:
            pid = child_of(agent)
            if pid:
                os.kill(pid, signal.SIGKILL)
                KILLS.append(pid)
        except OSError:
            pass
        time.sleep(1.5)


def meanwhile(rig):
    threading.Thread(target=kill_often, args=(rig.agent.pid,), daemon=True).start()


def attack(box):
    box.ready()
    time.sleep(60)


def check(rig):
    assert len(set(KILLS)) > 1, "killed: %r" % KILLS
    line = [line for line in rig.run.err.splitlines() if "elf child: " in line]
    assert line and " 0 ended" in line[0], line
