# SPDX-License-Identifier: BSD-2-Clause
"""What the default events gc, import and mem add to pyprofd's own cost beside samples and waits, on
fleets of programs whose interpreter has the probes: both in turn, the ratio of neighbours.  One
fleet does nothing that these events see, the other collects and touches memory all the time."""
import subprocess
import time

import harness
import kernel_bpf
import measure

PROGRAMS, CORES = 100, 0.8
MODES = {"without": ["--events", "cpu,offcpu,gil"], "with": []}


def interpreter():
    """The newest CPython with sites for gc and import."""
    for one in reversed(harness.interpreters()):
        notes = subprocess.run(["readelf", "-nW", one.command[0]], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if not one.root and b"gc__start" in notes:
            return one
    raise harness.Skip("no CPython with probes at hand")


def kernel_s(programs):
    return sum(ns for ns, _ in kernel_bpf.run_times(programs).values()) / 1e9


def once(start, options, seconds):
    """(own CPU, BPF time), in percent of a core."""
    profiler = start(99, harness.temporary(), 4, options)
    programs = profiler.programs()
    cpu, kernel, began = measure.own_cpu_s(profiler.pid), kernel_s(programs), time.monotonic()
    time.sleep(seconds)
    cpu = measure.own_cpu_s(profiler.pid) - cpu
    kernel, passed = kernel_s(programs) - kernel, time.monotonic() - began
    profiler.stop()
    return 100 * cpu / passed, 100 * kernel / passed


def fleet(start, how, rounds, seconds):
    with harness.Target("fleet.py", PROGRAMS, CORES, *how, ready=False,
                        python=interpreter()) as target:
        target.wait("ready", 180)
        with kernel_bpf.stats():
            return [{name: once(start, options, seconds) for name, options in MODES.items()}
                    for _ in range(rounds)]


def section(start, quick, say):
    """start(hz, directory, settle_s, options) gives a running pyprofd."""
    result = {"programs": PROGRAMS}
    for name, how in (("fleet", ()), ("fleet with memory", ("memory", ))):
        rounds = fleet(start, how, 2 if quick else 4, 20 if quick else 45)
        result[name] = one = {"rounds": rounds}
        for at, what in enumerate(("own CPU", "BPF time")):
            both = [measure.median([each[mode][at] for each in rounds]) for mode in MODES]
            ratios = [each["with"][at] / each["without"][at] for each in rounds]
            one[what] = {"percent": both, "ratio": measure.median(ratios),
                         "interval": measure.interval_95(ratios)}
            say("defaults %s of %d: %s %.3f %% of a core without gc, import and mem, %.3f %% with "
                "them: %.2f times (95 %%: %.2f to %.2f; own CPU of the first wanted <= 1.10)"
                % (name, PROGRAMS, what, both[0], both[1], one[what]["ratio"],
                   *one[what]["interval"]))
    return result
