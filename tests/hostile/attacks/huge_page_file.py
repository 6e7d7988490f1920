# SPDX-License-Identifier: BSD-2-Clause
"""Programs in files of huge pages, which are cut off while somebody looks at them."""
import ctypes
import mmap
import os
import time

import craft

HUGE = 2 << 20
WANTED = 4  # pages
COUNT_FILE = "/proc/sys/vm/nr_hugepages"
MFD_HUGETLB = 4


def prepare(rig):
    import harness  # not there for who attacks
    with open(COUNT_FILE, encoding="ascii") as file:
        before = int(file.read())
    if before < WANTED:
        def set_count(count):
            with open(COUNT_FILE, "w", encoding="ascii") as file:
                file.write("%d" % count)
        set_count(WANTED)
        rig.at_end.append(lambda: set_count(before))
    with open("/proc/meminfo", encoding="ascii") as file:
        free = [int(line.split()[1]) for line in file if line.startswith("HugePages_Free")]
    harness.need(free and free[0] >= WANTED, "no huge pages to be had")


def attack(box):
    craft.needs_x86()
    with open(craft.burner().write(os.path.join(box.directory, "huge.so")), "rb") as file:
        data = file.read()
    box.ready()
    while True:
        pid = os.fork()
        if pid == 0:
            fd = os.memfd_create("huge\n", MFD_HUGETLB)
            os.ftruncate(fd, HUGE)
            with mmap.mmap(fd, HUGE) as there:
                there[:len(data)] = data
            at = craft.libc.mmap(None, HUGE, 5, 2, fd, 0)
            assert at != ctypes.c_void_p(-1).value
            end = time.monotonic() + 0.3
            if os.fork() == 0:
                while time.monotonic() < end:
                    os.ftruncate(fd, 0) if end - time.monotonic() < 0.15 else time.sleep(0.001)
                os._exit(0)
            while True:  # until its pages are gone
                craft.call(at + craft.PAGE)
        os.waitpid(pid, 0)
