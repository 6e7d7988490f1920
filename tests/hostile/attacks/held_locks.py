# SPDX-License-Identifier: BSD-2-Clause
"""Processes that hold the lock of their own mappings for ever: one thread reads a page that never
comes through /proc/self/mem, another wants to map, and whoever looks at the process' mappings or
command line waits behind them."""
import glob
import os
import stat
import threading
import time

import craft

QUICK = True

PAGE = craft.PAGE
PROCESSES = 3
FUSE = "/dev/fuse"


def prepare(rig):
    """Who may have a FUSE is the host's to say; here everybody may, as usual."""
    import harness  # not there for who attacks
    harness.need(os.path.exists(FUSE), "no FUSE")
    path = os.path.join(rig.directory, "fuse")
    os.mknod(path, stat.S_IFCHR | 0o666, os.stat(FUSE).st_rdev)
    os.chmod(path, 0o666)


def hold(box, number):
    path = os.path.join(box.directory, "hold%d" % number)
    with open(path, "wb"):
        pass
    craft.become_root_of_nobody()
    fd = craft.mount_fuse(os.path.join(os.path.dirname(box.directory), "fuse"), path)
    if os.fork() == 0:
        craft.answer_fuse(fd)
    os.close(fd)
    os.stat(path)  # its size is not known before
    never = craft.map_file(path, 0, PAGE, 1)
    worker = craft.map_file(craft.burner().write(os.path.join(box.directory, "held%d.so" % number)))
    threading.Thread(target=craft.keep_calling, args=(worker,), daemon=True).start()
    print("trapped %d" % os.getpid(), flush=True)
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    threading.Thread(target=lambda: os.pread(memory, 8, never), daemon=True).start()
    time.sleep(0.2)
    craft.anonymous()


def states(pid):
    """Of its threads."""
    found = ""
    for name in glob.glob("/proc/%d/task/*/stat" % pid):
        with open(name, encoding="ascii", errors="replace") as file:
            found += file.read().rpartition(") ")[2][0]
    return found


def attack(box):
    craft.needs_x86()
    pids = []
    for number in range(PROCESSES):
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            os.dup2(write_end, 1)
            hold(box, number)
        os.close(write_end)
        with os.fdopen(read_end) as file:
            line = file.readline()
            if not line.startswith("trapped"):
                craft.skip(line[5:].strip() or "no trap")
            pids.append(int(line.split()[1]))
    end = time.monotonic() + 5
    # The reader waits for an answer, and who wants to map for the lock.
    while any("D" not in states(pid) for pid in pids):
        assert time.monotonic() < end, "no lock is held: %s" % [states(pid) for pid in pids]
        time.sleep(0.05)
    box.ready()
    time.sleep(60)


def check(rig):
    import re
    print("late, and left alone: %s" % re.findall(r"[0-9,]+ memory_\w+", rig.run.err))
