# SPDX-License-Identifier: BSD-2-Clause
"""Somebody samples the allocations of one process; a user without rights allocates and frees as
fast as two processes can, and has the C library mapped 120,000 times, through all of which the
kernel goes for each breakpoint."""
import os
import re
import signal
import time

import craft
import probed_mappings

SECONDS = 1
PROCESSES = 2
BLOCK, EVERY_S = 4 << 20, 0.02
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
SOURCE = """
import ctypes, select, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
print("ready", flush=True)
sys.stdin.readline()
turns = 0
while not select.select([sys.stdin], [], [], %g)[0]:
    libc.free(libc.malloc(%d))
    turns += 1
print(turns, flush=True)
""" % (EVERY_S, BLOCK)


def attack(box):
    craft.libc.malloc.restype = craft.ctypes.c_void_p
    craft.libc.free.argtypes = [craft.ctypes.c_void_p]
    for number in range(2 * PROCESSES):
        if os.fork() == 0:
            if number < PROCESSES:
                probed_mappings.map_often(os.path.realpath(LIBC), 0x28000)
                time.sleep(60)
            while True:
                craft.libc.free(craft.libc.malloc(4 << 20))
    time.sleep(1)
    box.ready()
    os.wait()


def meanwhile(rig):
    import harness  # not there for who attacks
    import rig as rigs
    import test_alloc
    victim = rigs.Program([rigs.PYTHON, "-c", SOURCE], rigs.VICTIM,
                          rig.folder("victim-alloc", rigs.VICTIM))
    rig.programs.append(victim)
    victim.wait_ready()
    rig.alloc_out = os.path.join(rig.shm(), "alloc.pb.gz")
    agent = harness.start(rig.alloc_out, victim.pid, None,
                          options=["--events", "alloc", "--live", "no"])
    test_alloc.attached(agent, settles=False)
    victim.go()
    time.sleep(4)
    rig.turns = int(victim.end())
    began = time.monotonic()
    rig.alloc = harness.finish(agent, 30, signal.SIGINT)
    rig.end_s = time.monotonic() - began


def check(rig):
    import harness
    assert rig.alloc.rc == 0, rig.alloc.err
    profile = harness.load(rig.alloc_out)
    index = [name for name, _ in profile.sample_types].index("alloc_space")
    got = sum(sample.values[index] for sample in profile.samples)
    wanted = rig.turns * BLOCK
    print("%.0f of %.0f MiB allocated; it ended within %.2f s: %s" % (
        got / 2**20, wanted / 2**20, rig.end_s, re.findall(r"probes slow .*", rig.alloc.err)))
    assert abs(got - wanted) < 0.2 * wanted + (20 << 20), rig.alloc.err
    assert rig.end_s < 5, "it took %.1f s to end" % rig.end_s
