# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the tests of off-CPU, wall and GIL profiles: sums of samples, ledger lines, intervals
that a program measured itself, a process's clocks read from outside."""
import math
import os
import re
import subprocess
import threading
import time

import harness
import machine

MS, SECOND = 10**6, 10**9


class Waits:
    """A profile's samples of one process (or all), with the value of one type in `ns`."""

    def __init__(self, path, pid=None, value=None):
        self.profile = harness.load(path)
        self.types = types = [name for name, _ in self.profile.sample_types]
        index = types.index(value) if value else 0
        count = next((types.index(name) for name in ("events", "samples") if name in types), -1)
        self.begin_ns = self.profile.time_ns
        self.end_ns = self.begin_ns + self.profile.duration_ns
        self.samples, self.values = [], []
        for s in self.profile.samples:
            if pid is None or s.labels.get("pid") == pid:
                frames = s.frames[::-1]
                self.values.append(s.values)
                self.samples.append(
                    harness.Sample(s.values[count], s.values[index], s.labels.get("pid", 0),
                                   s.labels.get("tid", 0), s.labels, frames))

    def ns(self, condition=lambda s: True):
        return sum(s.ns for s in self.samples if condition(s))

    def spread(self, condition=lambda s: True):
        """ns of one standard error: of the sums that rest on fewer waits than they have, as waits
        were left out or shared out.  They take from each other what they have too much, so a sum's
        error may be that of all of them together."""
        if "effective" not in self.types:
            return 0
        index = self.types.index("effective")
        return math.sqrt(
            sum(s.ns**2 / values[index] for s, values in zip(self.samples, self.values)
                if condition(s) and 0 < values[index] < s.count))

    def by_label(self, key, condition=lambda s: True):
        """{value of the label: ns}"""
        found = {}
        for s in self.samples:
            if condition(s):
                name = s.labels.get(key)
                found[name] = found.get(name, 0) + s.ns
        return found

    def clipped(self, intervals):
        """Of [begin, end, ns]: (the ns of those that begin in the profile's time, of all in it),
        parts by their length.  What goes on when the profile begins may be seen later than that."""
        low = high = 0
        for begin, end, ns in intervals:
            inside = ns * max(0, min(end, self.end_ns) - max(begin, self.begin_ns)) / (end - begin)
            low += inside if begin >= self.begin_ns else 0
            high += inside
        return low, high


def leaf(sample):
    """The innermost Python frame; None: there is none."""
    python = harness.python_frames(sample)
    return python[-1] if python else None


def mark_line(name, mark):
    """Line of targets/NAME that ends in `# L:MARK`."""
    with open(os.path.join(harness.TARGETS, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# L:" + mark):
                return number
    raise AssertionError("%s has no mark %s" % (name, mark))


def near(got, wanted, tolerance, what, slack=0):
    """got and wanted in ns."""
    assert abs(got -
               wanted) <= tolerance * wanted + slack, "%s: %.4f s, wanted %.4f s (%.2f %% off)" % (
                   what, got / SECOND, wanted / SECOND, 100 * (got / wanted - 1) if wanted else 0)


# ---------------------------------------------------------------- ledger

LEDGER = (("ledger", "nanoseconds"), ("lifetime", "nanoseconds"), ("threads", "count"),
          ("off_scheduler", "nanoseconds"), ("compared", "nanoseconds"),
          ("ledger_processes", "count"))
STATES = ("gil", "lock", "disk", "net", "gpu", "sleep", "child", "fault", "stopped", "run_queue",
          "unknown")


def ledgers(profile):
    """The ledger's rows of each process: {state: ns}, with `cpu` for what samples divided, pid (0:
    of others), comm, threads, and seconds: threads x wall in ns.  A process whose exec changed its
    name has a line for each."""
    found = {}
    for row in profile.ledger:
        pid, comm = row.labels.get("pid", 0), row.labels.get("comm", "")
        line = found.setdefault((pid, comm), dict.fromkeys(STATES + ("cpu", "seconds"), 0))
        line.update(pid=pid, comm=comm)
        state, (ns, lifetime, threads) = row.labels.get("state"), row.values[:3]
        assert not ns if state is None else ns > 0 and not lifetime, row
        if state is not None:
            line[state if state in STATES else "cpu"] += ns
        line["seconds"] += lifetime
        line["threads"] = line.get("threads", 0) + threads
    return list(found.values())


def ledger(profile, pid):
    """The only line of this process."""
    found = [line for line in ledgers(profile) if line["pid"] == pid]
    assert len(found) == 1, "%d lines of pid %d: %s" % (len(found), pid, profile.comments)
    return found[0]


def ledger_sum(line):
    """All the places where the process's time is."""
    return sum(ns for key, ns in line.items() if key not in (
        "seconds", "pid", "comm", "threads"))


def check_ledger(line, wanted_ns, tolerance=0.01):
    near(line["seconds"], wanted_ns, tolerance, "seconds of the ledger: %s" % line)
    near(ledger_sum(line), line["seconds"], 0.01, "sum of the ledger: %s" % line, 0.2 * SECOND)
    assert line["unknown"] <= 0.02 * line["seconds"] + 10 * MS, line


# ---------------------------------------------------------------- a process from outside

def stolen_ns():
    """What a hypervisor took from this machine's CPUs.  The scheduler leaves it out of a thread's
    time, when it tells of it at all; a sample that was due meanwhile comes late and is the
    thread's."""
    return machine.read().stolen_ns


class Meter:
    """Reads the scheduler's clocks of a process's threads until stop(): CPU, run queue, threads;
    and what the machine's host took from all of its CPUs, which is neither for the scheduler."""

    def __init__(self, pid, period_s=0.05, tid=None):
        """tid: only this thread."""
        self.pid, self.period_s, self.tid, self.points, self.ended = pid, period_s, tid, [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def read(self):
        cpu = delay = count = 0
        directory = "/proc/%d/task" % self.pid
        for tid in [self.tid] if self.tid else os.listdir(directory):
            with open("%s/%s/schedstat" % (directory, tid), encoding="ascii") as file:
                words = file.read().split()
            cpu, delay, count = cpu + int(words[0]), delay + int(words[1]), count + 1
        return cpu, delay, count, stolen_ns()

    def add_point(self):
        try:
            self.points.append((time.time_ns(),) + self.read())
        except (OSError, ProcessLookupError):
            pass

    def run(self):
        while not self.ended:
            self.add_point()
            time.sleep(self.period_s)

    def stop(self):
        self.ended = True
        self.thread.join()
        self.add_point()  # the profile may have ended since the last one

    def between(self, begin_ns, end_ns):
        """(CPU ns, run queue ns, threads at the end, stolen ns) of that time."""
        (cpu0, delay0, _, stolen0), (cpu1, delay1, count,
                                     stolen1) = self.at(begin_ns), self.at(end_ns)
        return cpu1 - cpu0, delay1 - delay0, count, stolen1 - stolen0

    def at(self, when_ns):
        for before, after in zip(self.points, self.points[1:]):
            if before[0] <= when_ns <= after[0]:
                share = (when_ns - before[0]) / (after[0] - before[0])
                return tuple(b + (a - b) * share for b, a in zip(before[1:], after[1:]))
        raise AssertionError("not watched at that time")


def made_wall(directory, path):
    """The path of the profile of kind wall that pyprof makes of the window of a file of cpu;
    windows of two seconds at least, as times are whole ones."""
    out = os.path.join(harness.temporary(), "wall.pb.gz")
    second = int(os.path.basename(path).split("-")[0]) // 1000 + 1
    subprocess.check_call([os.path.join(os.path.dirname(harness.PYPROFD), "pyprof"), "export",
                           directory, "--kind", "wall", "--since", "@%d" % second,
                           "--until", "@%d" % (second + 1), "-o", out])
    return out


def windows(directory, kind):
    """Paths of the files of this kind, oldest first."""
    found = []
    for base, _, files in os.walk(directory):
        for name in files:
            match = re.match(r"(\d+)-(\d+)-%s\.pb\.gz$" % kind, name)
            if match:
                found.append((int(match.group(1)), os.path.join(base, name)))
    return [path for _, path in sorted(found)]
