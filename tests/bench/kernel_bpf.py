# SPDX-License-Identifier: BSD-2-Clause
"""BPF programs and maps as the kernel shows them: run time, memory, entries.  No bpftool needed."""
import contextlib
import ctypes
import mmap
import os
import struct

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
MAP_GET_NEXT_KEY = 4
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 13, 14, 15
HASH, LRU_HASH = 1, 9  # enum bpf_map_type
STATS = "/proc/sys/kernel/bpf_stats_enabled"
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """Returns the result (>= 0), or None on any error; `attributes` is changed in place."""
    got = libc.syscall(SYS_BPF, command, attributes, len(attributes))
    return got if got >= 0 else None


def held(pid, key):
    """Ids of the maps ("map_id") or programs ("prog_id", also of links) that a process holds
    open."""
    found = set()
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii", errors="replace") as file:
                found |= {int(line.split()[1]) for line in file if line.startswith(key + ":")}
        except OSError:
            pass
    return found


@contextlib.contextmanager
def opened(command, number):
    attributes = ctypes.create_string_buffer(struct.pack("<III", number, 0, 0) + bytes(52), 64)
    fd = bpf(command, attributes)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def fdinfo(fd):
    with open("/proc/self/fdinfo/%d" % fd, encoding="ascii") as file:
        return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in file)}


def map_bytes(numbers):
    """Memory of these maps, as the kernel accounts it."""
    total = 0
    for number in numbers:
        with opened(MAP_GET_FD_BY_ID, number) as fd:
            if fd is not None:
                total += int(fdinfo(fd).get("memlock", 0))
    return total


def entries(numbers, kind, bound=2000000):
    """How many keys the maps of this kind (HASH, LRU_HASH) hold together."""
    total = 0
    for number in numbers:
        with opened(MAP_GET_FD_BY_ID, number) as fd:
            if fd is None:
                continue
            info = fdinfo(fd)
            if int(info["map_type"]) != kind:
                continue
            key = ctypes.create_string_buffer(int(info["key_size"]))
            following = ctypes.create_string_buffer(int(info["key_size"]))
            first = True
            while total < bound:
                attributes = ctypes.create_string_buffer(struct.pack(
                    "<IIQQ", fd, 0, 0 if first else ctypes.addressof(key),
                    ctypes.addressof(following)) + bytes(40), 64)
                if bpf(MAP_GET_NEXT_KEY, attributes) is None:
                    break
                first = False
                key.raw = following.raw
                total += 1
    return total


def name(fd):
    """Of a map."""
    info = ctypes.create_string_buffer(40)  # struct bpf_map_info up to its name
    attributes = ctypes.create_string_buffer(
        struct.pack("<IIQ", fd, len(info), ctypes.addressof(info)), 64)
    return info.raw[24:].rstrip(b"\0").decode() if bpf(OBJ_GET_INFO_BY_FD,
                                                       attributes) is not None else ""


def mapped(numbers, wanted):
    """The first page of the map of this name, which is mappable."""
    for number in numbers:
        with opened(MAP_GET_FD_BY_ID, number) as fd:
            if fd is not None and name(fd) == wanted:
                return mmap.mmap(fd, mmap.PAGESIZE)
    raise LookupError("no map " + wanted)


def run_times(numbers):
    """{program id: (ns, runs)} since bpf_stats were enabled."""
    found = {}
    for number in numbers:
        with opened(PROG_GET_FD_BY_ID, number) as fd:
            if fd is not None:
                info = fdinfo(fd)
                found[number] = (int(info.get("run_time_ns", 0)), int(info.get("run_cnt", 0)))
    return found


@contextlib.contextmanager
def stats():
    """kernel.bpf_stats_enabled is 1 inside, and what it was before afterwards."""
    with open(STATS, encoding="ascii") as file:
        before = file.read().strip()
    try:
        with open(STATS, "w", encoding="ascii") as file:
            file.write("1")
        yield
    finally:
        with open(STATS, "w", encoding="ascii") as file:
            file.write(before)
