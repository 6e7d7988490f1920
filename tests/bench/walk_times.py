# SPDX-License-Identifier: BSD-2-Clause
"""How long pyprofd's programs hold a CPU when they walk a stack, by their own histograms
(include/pyprofd/table.h), over the half seconds and CPUs in which the hypervisor took no time."""
import ctypes
import os
import struct
import time

import harness
import kernel_bpf

# As in table.h; microseconds that are wanted.
PROGRAMS = ("on_cpu_sample", 250), ("on_switch", 100), ("on_waking", 100)
SHIFT, PARTS, OCTAVES = 8, 8, 18  # as in table.h
BUCKETS = PARTS * OCTAVES
MAP_LOOKUP_ELEM = 1


def end_us(bucket):
    return ((PARTS + bucket % PARTS + 1) << (bucket // PARTS + SHIFT - 3)) / 1e3


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().replace("-", ",").split(",")[-1]) + 1


def stolen_ticks():
    """{CPU: ticks}, 10 ms each"""
    found = {}
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0][:3] == "cpu" and words[0] != "cpu":
                found[int(words[0][3:])] = int(words[8])
    return found


class Times:
    """The map `times` of a running pyprofd."""

    def __init__(self, numbers):
        self.fd = None
        for number in numbers:
            attributes = ctypes.create_string_buffer(
                struct.pack("<III", number, 0, 0) + bytes(52), 64)
            fd = kernel_bpf.bpf(kernel_bpf.MAP_GET_FD_BY_ID, attributes)
            if fd is not None and kernel_bpf.name(fd) == "times":
                self.fd = fd
            elif fd is not None:
                os.close(fd)
        if self.fd is None:
            raise OSError("no map `times`")
        self.value = ctypes.create_string_buffer(possible_cpus() * 8 * BUCKETS)

    def close(self):
        os.close(self.fd)

    def read(self, program):
        """A list of counts for each CPU."""
        key = ctypes.create_string_buffer(struct.pack("<I", program), 4)
        attributes = ctypes.create_string_buffer(
            struct.pack("<IIQQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(self.value),
                        0) + bytes(32), 64)
        if kernel_bpf.bpf(MAP_LOOKUP_ELEM, attributes) is None:
            raise OSError("the map `times` cannot be read")
        size = 8 * BUCKETS
        return [struct.unpack_from("<%dQ" % BUCKETS, self.value, cpu * size)
                for cpu in range(len(self.value) // size)]


def observe(times, seconds):
    """(sums of each program's buckets where nothing was stolen, share of CPUs x time that this
    was)"""
    sums = [[0] * BUCKETS for _ in PROGRAMS]
    kept = seen = 0
    end = time.monotonic() + seconds
    before, stolen = [times.read(at) for at in range(len(PROGRAMS))], stolen_ticks()
    while time.monotonic() < end:
        time.sleep(0.5)
        after, now = [times.read(at) for at in range(len(PROGRAMS))], stolen_ticks()
        for cpu, ticks in now.items():
            seen += 1
            if ticks != stolen.get(cpu):
                continue
            kept += 1
            for program, sum_of in enumerate(sums):
                for bucket in range(BUCKETS):
                    sum_of[bucket] += after[program][cpu][bucket] - before[program][cpu][bucket]
        before, stolen = after, now
    return sums, kept / max(1, seen)


def quantile_us(counts, share):
    wanted, seen, found = share * sum(counts), 0, float("nan")
    for bucket, count in enumerate(counts):
        if count and (not seen or seen < wanted):
            seen += count
            found = end_us(bucket)
    return found


def section(start, quick, say):
    """start(pid): a pyprofd that captures all events of a process and its children and has a budget
    that lets it walk often."""
    result = {}
    for case in ("deep", "wide", "cold"):
        with harness.Target("walks.py", case, python=harness.interpreter(
                (3, 6), (3, 6), prefer=(3, 6))) as target:
            profiler = start(target.pid)
            times = Times(profiler.maps())
            try:
                sums, kept = observe(times, 10 if quick else 30)
            finally:
                times.close()
                profiler.kill()
        for (name, wanted), counts in zip(PROGRAMS, sums):
            one = {
                "walks": sum(counts), "median_us": quantile_us(counts, 0.5), "p999_us": quantile_us(
                    counts, 0.999), "longest_us": quantile_us(counts, 1), "kept": kept
            }
            result["%s %s" % (case, name)] = one
            say("harmless %s, %s: %d walks (%.0f %% of the time no hypervisor took), half up to "
                "%.0f us, 99.9 %% up to "
                "%.0f us (wanted <= %d), all up to %.0f us" %
                (case, name, one["walks"], 100 * kept, one["median_us"], one["p999_us"], wanted,
                 one["longest_us"]))
    return result
