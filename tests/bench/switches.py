# SPDX-License-Identifier: BSD-2-Clause
"""What a context switch costs with off-CPU profiles, beside bpftrace's stacks at sched_switch."""
import os
import re
import shutil
import struct
import subprocess
import sys
import time

import harness
import kernel_bpf
import measure

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "../../include/pyprofd/config.h")
BPFTRACE = "tracepoint:sched:sched_switch /pid > 0/ { @[kstack, ustack] = count(); }"


def with_tracefs(command):
    """The command with tracefs where bpftrace looks for it, whether the machine has mounted it or
    not."""
    return [
        "unshare", "--mount", "sh", "-c",
        "mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing\n"
        'exec "$@"', "sh", *command
    ]


def build(name, *libraries):
    program = os.path.join(harness.temporary(), name)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-o", program,
                    os.path.join(HERE, "workloads", name + ".c"), *libraries], check=True)
    return program


class Empty:
    """Handlers that do nothing: what an event costs beyond them is what can be saved."""

    def __init__(self, name="empty_switch"):
        compiled = os.path.join(harness.temporary(), name + ".bpf.o")
        clang = os.environ.get("CLANG") or shutil.which("clang-19") or "clang"
        subprocess.run([clang, "-O2", "-g", "-target", "bpf", "-c", "-o", compiled,
                        os.path.join(HERE, "workloads", name + ".bpf.c")], check=True)
        self.process = subprocess.Popen([build("attach", "-lbpf"), compiled], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def turn(self, state):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == state + "\n", "the empty handler is not " + state

    def start(self):
        self.turn("on")
        return self

    def stop(self):
        self.turn("off")

    def end(self):
        self.process.communicate()


class Held:
    """A pyprofd that returns at once from each event (PP_CONFIG_PAUSED), as with --delay, but
    while it is started."""

    def __init__(self, profiler):
        self.profiler = profiler
        with open(CONFIG, encoding="utf-8") as file:
            self.paused = int(re.search(r"PP_CONFIG_PAUSED = (\d+)", file.read())[1])
        self.config = kernel_bpf.mapped(profiler.maps(), "config")
        self.stop()

    def turn(self, paused):
        flags = struct.unpack_from("<I", self.config)[0] & ~self.paused
        struct.pack_into("<I", self.config, 0, flags | paused)

    def start(self):
        self.turn(0)
        return self

    def stop(self):
        self.turn(self.paused)

    def end(self):
        self.start()
        self.profiler.stop()


class PingPong:
    """Two processes that hand the CPU to each other all the time.  On a shared machine their pace
    wanders by 7 % from one tenth of a second to the next, hardly less from one second to the next:
    what can be turned on and off quickly is seen best, however small."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def window(seconds):
        """A while in which nothing is started: (begin, end)."""
        begin = time.monotonic_ns()
        time.sleep(seconds)
        return begin, time.monotonic_ns()

    def stop(self):
        """A function that tells ns a switch of a window: the median of its parts of some ms, which
        what comes in bursts (interrupts of the host, the end of a profile's window) does not
        move."""
        self.process.terminate()
        parts = [(int(end), float(ns))
                 for end, ns in map(str.split,
                                    self.process.communicate()[0].splitlines())]
        # The first part in a window began before it.
        return lambda window: measure.median(
            [ns for end, ns in parts if window[0] < end <= window[1]][1:])


def added(command, start, pairs, seconds):
    """ns that are added to a switch between start() and its result's stop(): with it less without,
    just before and just after; and without."""
    pingpong, windows = PingPong(command), []
    for _ in range(pairs):
        before = pingpong.window(seconds)
        profiler = start()
        try:
            under = pingpong.window(seconds)
        finally:
            profiler.stop()
        windows.append((before, under, pingpong.window(seconds)))
    cost = pingpong.stop()
    return ([cost(under) - (cost(before) + cost(after)) / 2 for before, under, after in windows],
            [cost(before) for before, _, _ in windows])


def quickly(command, switch, pairs):
    """added() of what start() and stop() turn on and off at once."""
    try:
        return added(command, switch.start, pairs, 0.05)[0]
    finally:
        switch.end()


def share_of_a_core(program, start, mode, rate, seconds):
    """BPF time of all programs that the profiler holds, in percent of a core; switches a second."""
    profiler = start()
    try:
        process = subprocess.Popen(
            [program, mode, str(rate), str(seconds)], stdout=subprocess.DEVNULL)
        time.sleep(1)
        begin, before = time.monotonic(), kernel_bpf.run_times(profiler.programs())
        time.sleep(seconds - 2)
        after, wall = kernel_bpf.run_times(profiler.programs()), time.monotonic() - begin
        process.wait()
    finally:
        profiler.stop()
    spent = sum(ns - before.get(number, (0, 0))[0] for number, (ns, _) in after.items())
    runs = max(n - before.get(number, (0, 0))[1] for number, (_, n) in after.items())
    return 100 * spent / wall / 1e9, runs / wall


def section(pyprofd, peer, quick, say):
    """pyprofd, peer: start one, as run.py's; peer None: not here."""
    program, result = build("switches"), {}
    native = [program, "pingpong"]
    python = [sys.executable, os.path.join(HERE, "workloads", "pingpong.py")]
    pairs, quick_pairs, seconds = (4, 40, 5) if quick else (20, 400, 12)

    def tell(name, values):
        low, high = measure.interval_95(values)
        result[name] = {"median": measure.median(values), "low": low, "high": high, "all": values}
        return measure.median(values), low, high, len(values)

    found, bare = added(native, pyprofd, pairs, 1.5)
    result["bare_ns"] = measure.median(bare)
    say("switch   a switch of a pinned ping-pong takes %.0f ns" % result["bare_ns"])
    say("switch   pyprofd, started and ended, adds %.0f ns (95 %%: %.0f to %.0f, %d pairs)" % tell(
        "pyprofd_ns", found))
    empty = tell("empty_ns", quickly(native, Empty(), quick_pairs))
    more = tell("more_ns", quickly(native, Held(pyprofd()), quick_pairs))
    result["sum_ns"] = empty[0] + more[0]
    say("switch   in quick turns an empty tp_btf handler adds %.0f ns (95 %%: %.0f to %.0f, %d "
        "pairs)"
        % empty)
    say("switch   and pyprofd %.0f more than when it returns at once (95 %%: %.0f to %.0f, %d "
        "pairs)"
        % more)
    say("switch   both together are %.0f ns (wanted <= 350)" % result["sum_ns"])
    say("switch   between two CPythons pyprofd adds %.0f ns to an empty handler (95 %%: %.0f to "
        "%.0f, %d pairs; wanted <= 250)"
        % tell("python_more_ns", quickly(python, Held(pyprofd()), quick_pairs)))
    say("switch   where an empty handler adds %.0f ns (95 %%: %.0f to %.0f, %d pairs)" % tell(
        "python_empty_ns", quickly(python, Empty(), quick_pairs)))
    if peer:
        theirs = added(native, peer, max(3, pairs // 4), 1.5)[0]
        result["bpftrace_ns"] = {"median": measure.median(theirs), "all": theirs}
        say("switch   bpftrace with kstack and ustack adds %.0f ns: %.1f times pyprofd's" % (
            measure.median(theirs), measure.median(theirs) / max(1.0, measure.median(found))))
    with kernel_bpf.stats():
        for mode, wanted in (("paced", 3.5), ("fresh", 5)):
            share, rate = share_of_a_core(program, pyprofd, mode, 100000, seconds)
            result[mode] = {"percent": share, "rate": rate}
            say("switch   %s, %.0f switches a second: BPF programs take %.2f %% of a core (wanted "
                "<= %s)"
                % ("always new stacks" if mode == "fresh" else "the same stacks", rate, share,
                   wanted))
    return result
