# SPDX-License-Identifier: BSD-2-Clause
"""A program makes so many mappings that records of all are lost, beside twelve of another user's
with 60,000 each, and itself has as many: what may be lost is read again for those alone who have
mapped something, and at the cost of their user."""
import os

CPU_SHARE = 0.3
SLEEPERS, MAPPINGS = 12, 60000
SLEEPER = """
import ctypes, mmap, sys
libc, size = ctypes.CDLL(None), ctypes.c_size_t(4096)
memory = mmap.mmap(-1, %d * 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for i in range(0, %d, 2):
    libc.mprotect(ctypes.c_void_p(start + i * 4096), size, 0)
print("ready", flush=True)
sys.stdin.read()
""" % (MAPPINGS, MAPPINGS)


def prepare(rig):
    import rig as rigs
    home = rig.folder("sleepers", rigs.VICTIM)
    for _ in range(SLEEPERS):
        rig.programs.append(rigs.Program([rigs.PYTHON, "-c", SLEEPER], rigs.VICTIM, home))
    for program in rig.programs:
        program.wait_ready()


def attack(box):
    from_child, to_parent = os.pipe()
    if os.fork() == 0:
        os.dup2(to_parent, 1)
        os.execv(os.path.join(box.directory, "lost_records"), ["lost_records", "20"])
    os.read(from_child, 1)
    box.ready()
    os.wait()
