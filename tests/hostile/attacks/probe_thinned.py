# SPDX-License-Identifier: BSD-2-Clause
"""Calls a function that root probes on the whole machine without pause, so that entering the kernel
alone takes many times --max-slowdown.  Somebody else's calls of it are counted to the last one; the
attacker's own are thinned."""
import os
import time

QUICK = True
FUNCTION = "gnu_dev_makedev"  # of libc, which nobody calls without need
OPTIONS = ("--probe", "uprobe:libc.so.6:" + FUNCTION)
CALLS, PAUSE_S, SECONDS = 3000, 0.001, 4
VICTIM = """
import ctypes, sys, time
call = ctypes.CDLL(None).%s
print("ready", flush=True)
sys.stdin.readline()
for _ in range(%d):
    call(1, 2)
    time.sleep(%f)
print("called", flush=True)
sys.stdin.read()
""" % (FUNCTION, CALLS, PAUSE_S)


def attack(box):
    program = os.path.join(box.directory, "probe_thinned")
    if os.fork() == 0:
        os.execv(program, [program])
    box.ready()
    os.wait()


def meanwhile(rig):
    import rig as rigs
    time.sleep(2)  # its probes are there, and it is above its budget
    program = rigs.Program([rigs.PYTHON, "-c", VICTIM], rigs.VICTIM,
                           rig.folder("victim-calls", rigs.VICTIM), rigs.VICTIM_NICE)
    rig.programs.append(program)
    program.wait_ready()
    program.go()
    assert "called" in program.end(20)
    rig.attack.victim = program.pid


def check(rig):
    import harness
    import waits
    found, others = 0, 0
    for path in waits.windows(rig.store, "probe"):
        for sample in harness.load(path).samples:
            if sample.labels["pid"] == rig.attack.victim:
                found += sample.values[0]
            else:
                others += sample.values[0]
    print("%d of %d calls; %d of the attacker's" % (found, CALLS, others))
    assert others > 10 * CALLS, "its calls were not probed: %s" % rig.run.err
    assert found == CALLS, found
    assert "too often" in rig.run.err, rig.run.err
