#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [--quick] [--only SECTION,...] [-o FILE]   What pyprofd costs, side by side with its
peers.

Sections: bpf (BPF time of a sample), pairs (the program's CPU time at 1999 Hz against perf record),
samples (share of what a bare perf event sees), fleet (own CPU, memory and names at 10, 100 and 500
programs), start (time to the first named stack), short (short-lived programs), leak (100 spawns a
second), switch (what off-CPU profiles add to a context switch), faults (what counting touched
memory adds to a page fault), harmless (for how long a walk holds a CPU), bursts (what samples see
of a thread that works for microseconds), paint (how soon the flame
graph of 200,000 stacks is drawn), page (how soon the page of pyprofd-serve shows an hour), reader
(pyprof report beside go tool pprof on 3,600 windows), dump (a dump of 100 programs), alloc
(programs that allocate, beside memray), store-day
(what a day of history of 64 programs takes, and how long it is read), defaults (what the events
gc, import and mem add to the agent's own cost), fleet-push (what 200 nodes
push to a Pyroscope: docs/fleet.md), serve-cost (what pyprofd-serve takes beside the agent), probes
(what a hit of a user probe costs, beside an empty program's), cuda (the same for launches of CUDA),
gpu-label (what label gpu adds to a sample), oracle (programs that know the truth
under all profilers: docs/accuracy.md; --cases takes some of them).
Prints ratios of this run and writes them to build/bench.json.  Nothing is asserted: the machine's
noise is printed beside each number.

"all events" beside "cpu": pyprofd as it runs by default, all events into a directory.
"""
import argparse
import itertools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
sys.dont_write_bytecode = True
import allocs  # noqa: E402
import bare_events  # noqa: E402
import bursts  # noqa: E402
import cuda_launches  # noqa: E402
import dumps  # noqa: E402
import faults  # noqa: E402
import fleet_push  # noqa: E402
import gpu_labels  # noqa: E402
import harness  # noqa: E402
import kernel_bpf  # noqa: E402
import measure  # noqa: E402
import new_defaults  # noqa: E402
import oracle  # noqa: E402
import otel as otel_module  # noqa: E402
import page_paint  # noqa: E402
import paint  # noqa: E402
import peers as peers_module  # noqa: E402
import probe_hits  # noqa: E402
import reader  # noqa: E402
import serve_cost  # noqa: E402
import store_day  # noqa: E402
import switches  # noqa: E402
import waits  # noqa: E402
import walk_times  # noqa: E402

harness.TARGET_DIRECTORIES.append(os.path.join(HERE, "workloads"))
# Idle CPUs left out, as pyprofd does; user and kernel stack by frame pointers.
BPFTRACE = "profile:hz:%d /pid > 0/ { @[kstack, ustack] = count(); }"

# Reading them at its end takes perf a second, and crashed perf 6.1 here.
NO_BUILD_IDS = ["--no-buildid", "--no-buildid-cache"]


def say(text):
    print(text, flush=True)


class Running:
    """A profiler in the background, which samples when the constructor returns."""

    def __init__(self, words, out, settle_s=0.0, perf_events=True):
        self.out = out
        self.log = harness.tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        self.process.e2e_log, self.process.e2e_out = self.log, out
        self.pid = self.process.pid
        if perf_events:
            harness.sampling(self.process)
        time.sleep(settle_s)
        assert self.process.poll() is None, "%s ended: %s" % (words[0], harness.said(self.process))

    def maps(self):
        return kernel_bpf.held(self.pid, "map_id")

    def programs(self):
        return kernel_bpf.held(self.pid, "prog_id")

    def stop(self, number=signal.SIGINT, limit_s=60):
        return harness.finish(self.process, limit_s, number)

    def kill(self):
        self.process.kill()
        self.process.wait()


def pyprofd(hz, out=None, settle_s=0.5, options=()):
    out = out or os.path.join(harness.temporary(), "out.pb.gz")
    return Running(harness.arguments(out, None, hz, None, options), out, settle_s)


def pyprofd_all(hz, settle_s=0.5, options=()):
    """As it runs by default."""
    return pyprofd(hz, harness.temporary(), settle_s, options)


MODES = ("cpu", pyprofd), ("all events", pyprofd_all)


def cpu_samples(out, pids=None):
    """Of a file, or of all windows of a directory."""
    paths = waits.windows(out, "cpu") if os.path.isdir(out) else [out]
    return [sample for path in paths for sample in harness.samples(path, pids=pids)]


def bpftrace(peers, hz):
    out = os.path.join(harness.temporary(), "out.txt")
    return Running([peers.path["bpftrace"], "-q", "-o", out, "-e", BPFTRACE % hz], out, 0.5)


def otel(peers, hz, collector):
    return Running(otel_module.words(peers.path["otel"], hz, collector.port), None,
                   otel_module.SETTLE_S)


def perf_record(peers, hz):
    out = os.path.join(harness.temporary(), "perf.data")
    return Running(
        [peers.path["perf"], "record", "-q", "-e", "cpu-clock", "-F",
         str(hz), "-a", "-g"] + NO_BUILD_IDS + ["-o", out], out, 0.5)


def go(target):
    open(target.path("go"), "w").close()


def work(rounds):
    """The fixed work, once: its CPU seconds."""
    with harness.Target("pure.py", rounds) as target:
        go(target)
        target.wait("cpu.json", 300)
        return target.read("cpu.json")["cpu_s"]


# ---------------------------------------------------------------- bpf

# A program that is sampled often finds its data in the caches, one at the default rate does not:
# (hz, seconds of a round, wanted and aim as multiples of bpftrace's frame-pointer walk).
RATES = (1999, 2, 2.2, 1.5), (99, 10, 1.7, 1.5)


def bpf_together(starts, hz, seconds):
    """The same of several profilers of one program at the same time: its pace and the machine's are
    one.  {name: (ns of the program that takes most a sample, share of a CPU of all its
    programs)}"""
    with harness.Target("pure.py", 0) as target:
        go(target)
        profilers = {name: start() for name, start in starts.items()}
        try:
            # What happens once (tables, descriptions of code) is not a cost of each sample.
            time.sleep(2)
            before = {name: kernel_bpf.run_times(p.programs()) for name, p in profilers.items()}
            cpu, begin = measure.own_cpu_s(target.pid), time.monotonic()
            time.sleep(seconds)
            after = {name: kernel_bpf.run_times(p.programs()) for name, p in profilers.items()}
            expected = (measure.own_cpu_s(target.pid) - cpu) * hz
            seconds = time.monotonic() - begin
        finally:
            for profiler in profilers.values():
                profiler.kill()
        took = {name: [ns - before[name].get(number, (0, 0))[0] for number, (ns, _) in runs.items()]
                for name, runs in after.items()}
        return {
            name: (max(ns, default=0) / expected, sum(ns) / 1e9 / seconds)
            for name, ns in took.items()
        }


def bpf_say(hz, rounds, name):
    """Prints and returns what rounds found of a profiler."""
    values = [r[name][0] for r in rounds]
    one = {"ns": measure.median(values), "of_a_cpu": measure.median([r[name][1] for r in rounds])}
    say("bpf      %d Hz: %s %.1f us a busy sample (%s), all its programs %.2f %% of a CPU"
        % (hz, name, one["ns"] / 1e3, ", ".join("%.1f" % (v / 1e3)
                                                for v in values), 100 * one["of_a_cpu"]))
    return one


def bpf_beside_otel(peers, hz, seconds, count, one):
    """In rounds of their own: a third walk of the same stack would warm the caches for the
    others."""
    if "otel" not in peers.path:
        say("bpf      otel skipped: " + peers.why["otel"])
        return
    collector = otel_module.Collector()
    starts = {
        "pyprofd beside otel": lambda: pyprofd(hz, settle_s=0),
        "otel": lambda: otel(peers, hz, collector)
    }
    try:
        with kernel_bpf.stats():
            rounds = [bpf_together(starts, hz, seconds) for _ in range(count)]
    finally:
        collector.close()
    one["rounds_otel"] = rounds
    for name in starts:
        one[name] = bpf_say(hz, rounds, name)
    one["ratio_otel"] = measure.median([r["pyprofd beside otel"][0] / r["otel"][0] for r in rounds])
    say("bpf      %d Hz: %.2f of otel's (wanted <= 0.50)" % (hz, one["ratio_otel"]))


def section_bpf(peers, quick):
    result = {}
    for hz, seconds, wanted, aim in RATES:
        starts = {"pyprofd": lambda hz=hz: pyprofd(hz, settle_s=0)}
        if "bpftrace" in peers.path:
            starts["bpftrace"] = lambda hz=hz: bpftrace(peers, hz)
        # In turns with the others: another one beside them would warm the caches for them.
        by_default = {"pyprofd, all events": lambda hz=hz: pyprofd_all(hz, settle_s=0)}
        with kernel_bpf.stats():
            rounds = [
                bpf_together(starts, hz, seconds / 2 if quick else seconds)
                for _ in range(2 if quick else 5)
            ]
            more = [
                bpf_together(by_default, hz, seconds / 2 if quick else seconds)
                for _ in range(1 if quick else 2)
            ]
        result[str(hz)] = one = {"rounds": rounds, "rounds_all_events": more}
        bpf_beside_otel(peers, hz, seconds / 2 if quick else seconds, 2 if quick else 5, one)
        for name in starts:
            one[name] = bpf_say(hz, rounds, name)
        one["pyprofd, all events"] = bpf_say(hz, more, "pyprofd, all events")
        if "bpftrace" in starts:
            one["ratio"] = measure.median([r["pyprofd"][0] / r["bpftrace"][0] for r in rounds])
            say("bpf      %d Hz: ratio %.2f (wanted <= %.1f, aim %.1f)"
                % (hz, one["ratio"], wanted, aim))
        else:
            say("bpf      bpftrace skipped: " + peers.why["bpftrace"])
    return result


# ---------------------------------------------------------------- pairs

def section_pairs(peers, quick):
    hz, count, rounds = 1999, 4 if quick else 24, 40
    once = work(rounds)
    rounds = max(1, int(rounds * 2.0 / once))  # about 2 s of CPU
    if "perf" not in peers.path:
        say("pairs    skipped: perf " + peers.why["perf"])
        return {"skipped": peers.why["perf"]}
    ratios, bare, ours, theirs = [], [], [], []

    def under(start):
        profiler = start()
        try:
            return work(rounds)
        finally:
            profiler.stop()

    for number in range(count):
        pair = {}
        order = ("perf", "pyprofd") if number % 2 else ("pyprofd", "perf")
        for name in order:
            pair[name] = under((
                lambda: pyprofd(hz)) if name == "pyprofd" else lambda: perf_record(peers, hz))
        if number % 4 == 0:
            bare.append(work(rounds))
        ours.append(pair["pyprofd"])
        theirs.append(pair["perf"])
        ratios.append(pair["pyprofd"] / pair["perf"])
    low, high = measure.interval_95(ratios)
    result = {"hz": hz, "pairs": count, "median": measure.median(ratios), "low": low, "high": high,
              "ratios": ratios, "pyprofd_over_none": measure.median(ours) / measure.median(bare),
              "perf_over_none": measure.median(theirs) / measure.median(bare)}
    say("pairs    CPU time of the program at %d Hz, pyprofd over perf record -a -g: %.3f (95 %%: "
        "%.3f to "
        "%.3f, %d pairs; wanted <= 1.02)" % (hz, result["median"], low, high, count))
    say("pairs    over no profiler: pyprofd %.3f, perf %.3f" % (
        result["pyprofd_over_none"], result["perf_over_none"]))
    return result


# ---------------------------------------------------------------- samples

def section_samples(peers, quick):
    """A second set of perf events, with no program attached, at the same time."""
    del peers
    result = {}
    for hz, (mode, start) in ((99, MODES[0]), (1999, MODES[0]), (1999, MODES[1])):
        events = bare_events.BareEvents(10 ** 9 // hz)
        profiler = start(hz)
        with harness.Target("pure.py", 60 if quick else 600) as target:
            go(target)
            target.wait("cpu.json", 300)
            pid, cpu_s = target.pid, target.read("cpu.json")["cpu_s"]
        run = profiler.stop()
        counts, lost = events.stop()
        theirs = counts.get(pid, 0)
        ours = harness.total(cpu_samples(run.out, {pid}))
        result["%d %s" % (hz, mode)] = {
            "pyprofd": ours, "bare": theirs, "lost": lost, "share": ours / max(1, theirs),
            "cpu_s": cpu_s
        }
        say("samples  at %d Hz, %s: %d of the %d that a bare perf event sees (%.2f %%; wanted >= "
            "99.9); CPU time x hz "
            "%.0f" % (hz, mode, ours, theirs, 100 * ours / max(1, theirs), cpu_s * hz))
    return result


# ---------------------------------------------------------------- fleet

def fleet_samples(directory):
    """CPU samples by pid, and of these the ones with the members' function, over all windows."""
    seen, named = {}, {}
    for sample in cpu_samples(directory):
        seen[sample.pid] = seen.get(sample.pid, 0) + sample.count
        if harness.holds(sample, "fleet_mid", "fleet_hot") or harness.holds(sample, "member"):
            named[sample.pid] = named.get(sample.pid, 0) + sample.count
    return seen, named


def fleet_peer(name, peers, target, seconds):
    out = os.path.join(harness.temporary(), name)
    words = {
        "py-spy": [
            peers.path.get("py-spy"), "record", "-s", "-p",
            str(target.pid), "-r", "99", "-f", "raw", "-o", out, "-d", "100000"
        ], "austin": [
            peers.path.get("austin"), "-i", "10101us", "-C", "-p",
            str(target.pid), "-o", out
        ]
    }[name]
    profiler = Running(words, out, 3, perf_events=False)
    try:
        if profiler.process.poll() is not None:
            return {"skipped": harness.said(profiler.process).strip()[-200:]}
        cpu = measure.own_cpu_s(profiler.pid)
        time.sleep(seconds)
        cpu = measure.own_cpu_s(profiler.pid) - cpu
        return {"own_cpu_percent": 100 * cpu / seconds,
                "rss_mib": measure.status_kib(profiler.pid, "VmHWM") / 1024}
    finally:
        profiler.kill()


def fleet(count, seconds, mode):
    with harness.Target("fleet.py", count, 0.8, ready=False) as target:
        target.wait("ready", 180)
        pids = set(target.read("pids.json"))
        directory = harness.temporary()
        profiler = pyprofd(99, directory, settle_s=3,
                           options=["--events", "cpu"] if mode == "cpu" else [])
        cpu = measure.own_cpu_s(profiler.pid)
        time.sleep(seconds)
        cpu = measure.own_cpu_s(profiler.pid) - cpu
        result = {"processes": count, "seconds": seconds, "own_cpu_percent": 100 * cpu / seconds,
                  "rss_mib": measure.status_kib(profiler.pid, "VmHWM") / 1024,
                  "anonymous_mib": measure.status_kib(profiler.pid, "RssAnon") / 1024,
                  "start_cpu_s": measure.own_cpu_s(profiler.pid) - cpu}
        result["maps_mib"] = kernel_bpf.map_bytes(profiler.maps()) / (1 << 20)
        run = profiler.stop()
        seen, named = fleet_samples(directory)
        result["sampled"] = len(pids & set(seen))
        result["named"] = len(pids & set(named))
        result["samples"] = sum(n for p, n in seen.items() if p in pids)
        result["named_samples"] = sum(n for p, n in named.items() if p in pids)
        result["summary"] = run.err.strip().splitlines()[-1] if run.err.strip() else ""
    return result


FLEETS = (10, "cpu"), (100, "cpu"), (100, "all events"), (500, "cpu"), (500, "all events")
FLEETS_QUICK = (10, "cpu"), (10, "all events"), (100, "cpu"), (100, "all events")
MAPS_MIB = {"cpu": 32, "all events": 40}  # wanted, up to 4 CPUs; more with 500 programs


def section_fleet(peers, quick):
    result = {}
    for count, mode in FLEETS_QUICK if quick else FLEETS:
        one = fleet(count, 20 if quick else 60, mode)
        result["%d %s" % (count, mode)] = one
        say("fleet    %d programs, %s: own CPU %.2f %% of a core (wanted <= %s), RSS %.1f MiB "
            "(%.1f anonymous; wanted <= "
            "%d) + maps %.1f MiB (wanted <= %d), %d sampled, of these named %d, %d of %d samples" %
            (count, mode, one["own_cpu_percent"], "1" if count > 100 else "0.3", one["rss_mib"],
             one["anonymous_mib"], 64 if count > 100 else 40, one["maps_mib"], MAPS_MIB[mode],
             one["sampled"], one["named"], one["named_samples"], one["samples"]))
    for name in ("py-spy", "austin"):
        if name not in peers.path:
            say("fleet    %s skipped: %s" % (name, peers.why[name]))
            continue
        with harness.Target("fleet.py", 100, 0.8, ready=False) as target:
            target.wait("ready", 180)
            one = fleet_peer(name, peers, target, 8)
        result[name] = one
        if "skipped" in one:
            say("fleet    %s skipped: %s" % (name, one["skipped"]))
            continue
        say("fleet    100 programs, %s: own CPU %.1f %% of a core (%.0f times pyprofd's), RSS %.0f "
            "MiB"
            % (name, one["own_cpu_percent"],
               one["own_cpu_percent"] / result["100 cpu"]["own_cpu_percent"], one["rss_mib"]))
    return result


# ---------------------------------------------------------------- start

SLOT_S = 0.01


def first_slot(names, begin):
    """Seconds from `begin` (CLOCK_MONOTONIC) to the earliest of the at_N names."""
    slots = {int(m.group(1)) for m in (re.search(r"\bat_(\d+)\b", n) for n in names) if m}
    after = [(slot - int(begin / SLOT_S)) % 1000 for slot in slots]
    return min(after) * SLOT_S if after else float("nan")


def start_once(words, out, read):
    begin = time.monotonic()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    try:
        return first_slot(read(out), begin)
    except (OSError, AssertionError):
        return float("nan")


def names_of_profile(path):
    return {
        n for s in cpu_samples(path if os.path.exists(path) else path + ".d")
        for n in harness.names(s)
    }


def names_of_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.findall(r"at_\d+", file.read())


def section_start(peers, quick):
    count, hz = 3 if quick else 10, 499
    result = {}

    def several(label, make_words, read, pid=None):
        values = []
        for _ in range(count):
            out = os.path.join(harness.temporary(), "o.pb.gz")
            values.append(start_once(make_words(out), out, read))
            time.sleep(0.3)
        known = [v for v in values if v == v]
        result[label] = {"median_s": measure.median(known), "values_s": values}
        say("start    %s: first named stack after %.0f ms (median of %d; %s)"
            % (label, 1000 * measure.median(known), len(known), ", ".join(
                "%.0f" % (1000 * v) for v in values)))

    def ours(out):
        return harness.arguments(out, None, hz, 2)

    def ours_by_default(out):
        return harness.arguments(out + ".d/", None, hz, 2)

    with harness.Target("clock.py") as target:
        several("pyprofd, one interpreter (wanted <= 300)", ours, names_of_profile)
        several("pyprofd, one interpreter, all events", ours_by_default, names_of_profile)
        if "py-spy" in peers.path:
            several(
                "py-spy", lambda out: [
                    peers.path["py-spy"], "record", "-p",
                    str(target.pid), "-r",
                    str(hz), "-f", "raw", "-o", out, "-d", "1"
                ], names_of_text)
        other = [
            i for i in harness.interpreters()
            if i.version >= (3, 6) and i.command != target.python.command
        ][-4:]
        more = [harness.Target("burn.py", 0, python=i) for i in other]
        if more:
            several(
                "pyprofd, %d interpreters (wanted <= %d)" % (1 + len(more), 300 + 150 * len(more)),
                ours, names_of_profile)
        for one in more:
            one.stop()
    return result


# ---------------------------------------------------------------- short

def section_short(peers, quick):
    del peers
    result = {}
    loads = ("20 a second", 20), ("back to back", 0)
    for (label, rate), (mode, start) in itertools.product(loads, MODES):
        label += ", " + mode
        # Every child lives within the profile.
        profiler = start(99)
        with harness.Target("spawns.py", rate) as target:
            time.sleep(5 if quick else 15)
            target.stop()
            pids = set(target.read("pids.json"))
        run = profiler.stop()
        own = {}
        for sample in cpu_samples(run.out, pids):
            own.setdefault(sample.pid, []).append(sample)
        named = sum(any(harness.names(s) for s in chosen) for chosen in own.values())
        worked = sum(
            any(harness.holds(s, "spawn_child_work") for s in chosen) for chosen in own.values())
        count = sum(harness.total(chosen) for chosen in own.values())
        with_names = sum(s.count for chosen in own.values() for s in chosen if harness.names(s))
        result[label] = {
            "started": len(pids), "sampled": len(own), "named": named, "own_function": worked,
            "samples": count, "named_samples": with_names
        }
        say("short    %s: %d sampled of %d started; with Python names %.1f %% (wanted >= 95), with "
            "their own "
            "function %.1f %%; %.1f %% of samples" %
            (label, len(own), len(pids), 100 * named / max(1, len(own)),
             100 * worked / max(1, len(own)), 100 * with_names / max(1, count)))
    return result


# ---------------------------------------------------------------- leak

def section_leak(peers, quick):
    del peers
    profiler = pyprofd_all(99, settle_s=1, options=["--interval", "5"])

    def state():
        return {"rss_kib": measure.status_kib(profiler.pid, "VmRSS"),
                "anonymous_kib": measure.status_kib(profiler.pid, "RssAnon"),
                "fds": measure.fd_count(profiler.pid),
                # Caches fill up to their bound and stay there; the others shall come back.
                "entries": kernel_bpf.entries(profiler.maps(), kernel_bpf.HASH),
                "cached": kernel_bpf.entries(profiler.maps(), kernel_bpf.LRU_HASH)}

    def spawn(seconds):
        with harness.Target("spawns.py", 100, "true") as target:
            time.sleep(seconds)
            target.stop()
            return len(target.read("pids.json"))

    spawn(5 if quick else 20)  # tables, caches and the allocator reach their size
    time.sleep(11)
    before = state()
    started = spawn(10 if quick else 60)
    time.sleep(11)
    after = state()
    profiler.stop()
    say("leak     %d programs spawned: RSS %d -> %d KiB (anonymous %d -> %d), file descriptors %d "
        "-> %d, map "
        "entries %d -> %d (in caches %d -> %d)" %
        (started, before["rss_kib"], after["rss_kib"], before["anonymous_kib"],
         after["anonymous_kib"], before["fds"], after["fds"], before["entries"], after["entries"],
         before["cached"], after["cached"]))
    return {"spawned": started, "before": before, "after": after}


# ---------------------------------------------------------------- switch

def section_switch(peers, quick):
    def bpftrace_switches():
        out = os.path.join(harness.temporary(), "out.txt")
        return Running(
            switches.with_tracefs(
                [peers.path["bpftrace"], "-q", "-o", out, "-e", switches.BPFTRACE]), out, 4,
            perf_events=False)

    # Three seconds: what the agent reads once (processes, names of the kernel) is not a cost of
    # each switch.
    return switches.section(lambda: pyprofd(99, options=["--events", "offcpu"], settle_s=3),
                            bpftrace_switches if "bpftrace" in peers.path else None, quick, say)


def section_faults(_peers, quick):
    return faults.section(
        lambda options: pyprofd(1, options=["--events", "mem", *options], settle_s=1), quick, say)


def section_harmless(peers, quick):
    del peers
    # Often, for many figures: the budget is not the question here.  Of the case alone: other stacks
    # are less deep.
    options = ["--duration", 600, "--max-cpu", 40 * os.cpu_count(), "--events",
               "cpu,offcpu,gil,gc,import,mem,cuda,wakers"]
    return walk_times.section(lambda pid: pyprofd_all(499, options=options + ["--pid", pid]), quick,
                              say)


def section_bursts(peers, quick):
    perf = peers.path.get("perf")
    if not perf:
        say("bursts   perf skipped: " + peers.why["perf"])
    return bursts.section(lambda: pyprofd(bursts.HZ),
                          (lambda: perf_record(peers, bursts.HZ)) if perf else None, perf, quick,
                          say)


def section_paint(peers, quick):
    return paint.section(os.path.dirname(os.path.abspath(peers.venv)), quick, say)


def section_page(peers, quick):
    return page_paint.section(os.path.dirname(os.path.abspath(peers.venv)), quick, say)


def section_reader(peers, quick):
    return reader.section(os.path.dirname(os.path.abspath(peers.venv)), os.path.join(
        os.path.dirname(harness.PYPROFD), "pyprof"), quick, say)


def section_dump(peers, quick):
    return dumps.section(peers, quick, say)


def section_alloc(peers, quick):
    return allocs.section(peers, quick, say)


def section_defaults(_, quick):
    return new_defaults.section(pyprofd, quick, say)


def section_store_day(_peers, quick):
    return store_day.section(quick, say)


def section_fleet_push(_peers, quick):
    return fleet_push.section(quick, say)


def section_serve_cost(_peers, quick):
    return serve_cost.section(quick, say)


# ---------------------------------------------------------------- probes

def section_probes(_, quick):
    def start(options):
        out = os.path.join(harness.temporary(), "out.pb.gz")
        return Running(harness.arguments(out, options=options), out, perf_events=False)
    return probe_hits.section(start, quick, say)


def section_cuda(_, quick):
    def start(options):
        out = os.path.join(harness.temporary(), "out.pb.gz")
        return Running(harness.arguments(out, options=options), out, perf_events=False)
    return cuda_launches.section(start, quick, say)


def section_oracle(peers, quick):
    return oracle.section(peers, quick, say, ORACLE_CASES)


def section_gpu_label(peers, quick):
    del peers
    return gpu_labels.compare(pyprofd, say, quick)


SECTIONS = {
    "bpf": section_bpf, "pairs": section_pairs, "samples": section_samples, "fleet": section_fleet,
    "start": section_start, "short": section_short, "leak": section_leak, "switch": section_switch,
    "faults": section_faults, "harmless": section_harmless, "bursts": section_bursts,
    "paint": section_paint, "page": section_page, "reader": section_reader, "dump": section_dump,
    "alloc": section_alloc, "defaults": section_defaults,
    "oracle": section_oracle, "store-day": section_store_day, "fleet-push": section_fleet_push,
    "serve-cost": section_serve_cost, "probes": section_probes,
    "cuda": section_cuda, "gpu-label": section_gpu_label
}
ORACLE_CASES = ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short runs, for the harness itself")
    parser.add_argument("--only", default=",".join(SECTIONS), help="comma-separated sections")
    parser.add_argument("-o", "--output", default=os.path.join(TOP,
                                                               os.environ.get("BUILD") or "build",
                                                               "bench.json"))
    parser.add_argument("--cases", default="", help="of section oracle: " + ", ".join(oracle.CASES))
    options = parser.parse_args()
    unknown = [name for name in options.only.split(",") if name not in SECTIONS]
    if unknown:
        parser.error("no section %s; there are %s" % (unknown[0], ", ".join(SECTIONS)))
    global ORACLE_CASES
    ORACLE_CASES = options.cases
    if os.geteuid() != 0:
        print("bench: not root: nothing can be profiled", file=sys.stderr)
        return 1
    if not os.access(harness.PYPROFD, os.X_OK):
        print("bench: no %s: build it first" % harness.PYPROFD, file=sys.stderr)
        return 1
    os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    peers = peers_module.Peers(os.path.dirname(os.path.abspath(options.output)))
    result = {
        "machine": {"kernel": platform.release(),
                    "cpus": os.cpu_count()}, "quick": options.quick, "peers": peers.version,
        "peers_absent": peers.why, "load_before": os.getloadavg(), "time": time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    }
    say("machine  Linux %s, %d CPUs, load %.1f; %s"
        % (platform.release(), os.cpu_count(), measure.loadavg(), ", ".join(
            sorted(peers.version.values()))))
    failed = 0
    os.environ["E2E_TMP"] = directory = harness.temporary()
    for name in options.only.split(","):
        result[name] = {}
        idle = measure.quiet()
        if idle < 0.9:
            say("%-8s the machine is not quiet: %.0f %% idle" % (name, 100 * idle))
        try:
            result[name] = SECTIONS[name](peers, options.quick)
        except (AssertionError, OSError, harness.Skip, subprocess.SubprocessError) as error:
            say("%-8s failed: %s" % (name, error))
            result[name] = {"failed": str(error)}
            failed += 1
        result[name]["idle_before"] = idle
        harness.clean_up()
    shutil.rmtree(directory, ignore_errors=True)
    with open(options.output + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, allow_nan=True)
    os.rename(options.output + ".new", options.output)
    say("written  %s" % os.path.relpath(options.output))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
