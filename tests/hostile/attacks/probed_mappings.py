# SPDX-License-Identifier: BSD-2-Clause
"""A file with a thousand sites that is mapped 120,000 times before it is known as an interpreter:
the kernel puts each breakpoint into each mapping, and no process of the machine can fork
meanwhile."""
import os
import threading
import time

import craft
import probed_files

EVENTS = True
SETTLE_S = 4
PAGE = craft.PAGE
MAPPINGS, PROCESSES = 60000, 2
FORK_S = 3  # eight sites by 120,000 mappings by a microsecond, on a busy machine
LATE = []


def map_often(path, offset):
    """Where each is read only it counts for no program's code, but for breakpoints."""
    fd = os.open(path, os.O_RDONLY)
    for _ in range(MAPPINGS):
        craft.libc.mmap(None, PAGE, 1, 2, fd, offset)


def attack(box):
    craft.needs_x86()
    path = probed_files.make(box, 0)
    for _ in range(PROCESSES):
        if os.fork() == 0:
            map_often(path, PAGE)
            time.sleep(60)
    time.sleep(1)
    box.ready()
    craft.keep_calling(craft.map_fake(path) + PAGE, 1)


def watch_forks(rig):
    """As a program of root's forks, ten times a second."""
    while rig.agent.poll() is None:
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        LATE.append(time.monotonic() - began)
        time.sleep(0.1)


def meanwhile(rig):
    threading.Thread(target=watch_forks, args=(rig,), daemon=True).start()


def check(rig):
    print("the longest fork of another program took %.0f ms" % (1e3 * max(LATE)))
    assert max(LATE) < FORK_S + rig.excess_s(), "a fork took %.3f s" % max(LATE)
