# SPDX-License-Identifier: BSD-2-Clause
"""What a context switch costs with off-CPU profiles, beside bpftrace's stacks at sched_switch."""
import os
import shutil
import subprocess
import time

import harness
import kernel_bpf
import measure

HERE = os.path.dirname(os.path.abspath(__file__))
BPFTRACE = "tracepoint:sched:sched_switch /pid > 0/ { @[kstack, ustack] = count(); }"


def build(name, *libraries):
    program = os.path.join(harness.temporary(), name)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-o", program,
                    os.path.join(HERE, "workloads", name + ".c"), *libraries], check=True)
    return program


class Empty:
    """A handler of sched_switch that does nothing, while it is attached."""

    def __init__(self, attach, compiled):
        self.process = subprocess.Popen([attach, compiled], stdout=subprocess.PIPE)
        assert self.process.stdout.readline(), "the empty handler is not attached"

    def stop(self):
        self.process.terminate()
        self.process.communicate()


def empty_handler():
    """Starts one: what a switch costs beyond it is what can be saved."""
    compiled = os.path.join(harness.temporary(), "empty_switch.bpf.o")
    clang = os.environ.get("CLANG") or shutil.which("clang-19") or "clang"
    subprocess.run([clang, "-O2", "-g", "-target", "bpf", "-c", "-o", compiled,
                    os.path.join(HERE, "workloads", "empty_switch.bpf.c")], check=True)
    attach = build("attach", "-lbpf")
    return lambda: Empty(attach, compiled)


def ns_a_switch(program, count):
    return float(subprocess.run([program, "pingpong", str(count)], check=True, stdout=subprocess.PIPE).stdout)


def added(program, starts, pairs, count):
    """ns added to a switch by each, in turn: with it less without, the bare runs before and after; and all bare runs."""
    found, bare = [[] for _ in starts], [ns_a_switch(program, count)]
    for _ in range(pairs):
        for start, its in zip(starts, found):
            profiler = start()
            try:
                under = ns_a_switch(program, count)
            finally:
                profiler.stop()
            bare.append(ns_a_switch(program, count))
            its.append(under - (bare[-2] + bare[-1]) / 2)
    return found, bare


def share_of_a_core(program, start, mode, rate, seconds):
    """BPF time of all programs that the profiler holds, in percent of a core; switches a second."""
    profiler = start()
    try:
        process = subprocess.Popen([program, mode, str(rate), str(seconds)], stdout=subprocess.DEVNULL)
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
    pairs, count, seconds = (4, 50000, 5) if quick else (20, 200000, 12)

    (found, empty), bare = added(program, [pyprofd, empty_handler()], pairs, count)
    low, high = measure.interval_95(found)
    least = measure.median(empty)
    result["pyprofd_ns"] = {"median": measure.median(found), "low": low, "high": high, "all": found}
    result["empty_ns"] = {"median": least, "all": empty}
    result["bare_ns"] = measure.median(bare)
    say("switch   pyprofd adds %.0f ns to a switch of a pinned ping-pong (95 %%: %.0f to %.0f, %d pairs; wanted "
        "<= 350 where an empty handler costs 70); the switch alone is %.0f ns" % (
            measure.median(found), low, high, pairs, measure.median(bare)))
    say("switch   an empty tp_btf handler adds %.0f ns (95 %%: %.0f to %.0f): pyprofd %.1f times that (350 of 70: 5)" % (
        (least,) + measure.interval_95(empty) + (measure.median(found) / max(1.0, least),)))
    if peer:
        theirs = added(program, [peer], max(3, pairs // 4), count)[0][0]
        result["bpftrace_ns"] = {"median": measure.median(theirs), "all": theirs}
        say("switch   bpftrace with kstack and ustack adds %.0f ns: %.1f times pyprofd's" % (
            measure.median(theirs), measure.median(theirs) / max(1.0, measure.median(found))))
    with kernel_bpf.stats():
        for mode, wanted in (("paced", 3.5), ("fresh", 5)):
            share, rate = share_of_a_core(program, pyprofd, mode, 100000, seconds)
            result[mode] = {"percent": share, "rate": rate}
            say("switch   %s, %.0f switches a second: BPF programs take %.2f %% of a core (wanted <= %s)" % (
                "always new stacks" if mode == "fresh" else "the same stacks", rate, share, wanted))
    return result
