# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Touches memory in ways that are known, when `go` is there; writes what the kernel says of its
growth, and at the end what a forked child copied by reading."""
import ctypes
import mmap
import os
import time

import common

MB = 1 << 20
PAGE = mmap.PAGESIZE
HUGE = 2 * MB
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def resident():
    """Bytes by kind: anon, file, shmem."""
    found = {}
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("Rss"):
                found[line[3:line.index(":")].lower()] = int(line.split()[1]) * 1024
    return found


def own_bytes():
    """Pages that no other process has: what a forked child copied or added."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty")) * 1024


def pages(size):
    memory = mmap.mmap(-1, size, flags=PRIVATE)
    for at in range(0, size, PAGE):
        memory[at] = 1  # L:pages
    return memory


def huge_pages(size):
    memory = mmap.mmap(-1, size + HUGE, flags=PRIVATE)
    memory.madvise(mmap.MADV_HUGEPAGE)
    first = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % HUGE
    for at in range(first, first + size, PAGE):
        memory[at] = 1  # L:huge_pages
    return memory


def zero_pages(size):
    memory = mmap.mmap(-1, size, flags=PRIVATE)
    for at in range(0, size, PAGE):
        assert not memory[at]
    for at in range(0, size, PAGE):
        memory[at] = 1  # L:zero_pages
    return memory


def read(size):
    with open(common.path("data"), "rb", buffering=0) as file:
        return file.read(size)  # L:read


def shared(size):
    memory = mmap.mmap(-1, size)
    for at in range(0, size, PAGE):
        memory[at] = 1  # L:shared
    return memory


def private_file(size):
    with open(common.path("data"), "rb") as file:
        memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    for at in range(0, size, PAGE):
        memory[at] = 1  # L:private_file
    return memory


def objects(size):
    return [bytes(2000) for _ in range(size // 2048)]  # L:objects


def page_cache(size):
    """Nothing of this is memory of the program: it reads a file into the same buffer again and
    again, writes one, and maps one that it reads."""
    buffer = bytearray(MB)
    with open(common.path("data"), "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.readinto(buffer):
            pass
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        memory = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
        if hasattr(memory, "madvise"):
            memory.madvise(mmap.MADV_RANDOM)
        for at in range(0, size, PAGE):
            memory[at]
    with open(common.path("copy"), "wb", buffering=0) as file:
        for _ in range(size // MB):
            file.write(buffer)
    return memory


def children(inherited):
    """A child that only reads what it inherited copies its pages, as each reference is counted."""
    for text in inherited:  # L:inherited
        pass


def fork_reader(inherited):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    before, own = resident(), own_bytes()
    children(inherited)
    added = resident()["anon"] - before["anon"]
    common.write("copied.json", {"bytes": own_bytes() - own - added, "pid": os.getpid()})
    os._exit(0)


def main():
    ways = [(pages, 96), (huge_pages, 128), (zero_pages, 48), (read, 64), (shared, 64),
            (private_file, 48), (objects, 64), (page_cache, 48)]
    with open(common.path("data"), "wb") as file:
        file.write(os.urandom(MB) * 64)
        os.fsync(file.fileno())
    inherited = [str(number) * 20 for number in range(200000)]
    keep, truth = [], {}
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    begin = resident()
    for way, size in ways:
        before = resident()
        keep.append(way(size * MB))
        after = resident()
        truth[way.__name__] = {kind: after[kind] - before[kind] for kind in after}
        time.sleep(0.1)
    end = resident()
    truth["all"] = {kind: end[kind] - begin[kind] for kind in end}
    fork_reader(inherited)
    common.write("truth.json", truth)
    while not common.stopped():
        time.sleep(0.05)
    return keep


if __name__ == "__main__":
    main()
