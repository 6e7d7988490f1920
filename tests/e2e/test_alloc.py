# SPDX-License-Identifier: BSD-2-Clause
"""Allocations by function and what of them is held, of programs that know both."""
import glob
import json
import math
import os
import re
import signal
import time

import harness

MEAN = 1 << 19  # include/pyprofd/probe.h
FULL = ("--max-slowdown", "1000x")


def chance(size):
    return -math.expm1(-size / MEAN)


def error(size, count):
    """The standard error of the bytes of so many blocks."""
    p = chance(size)
    return size * math.sqrt(count * (1 - p) / p)


def ended(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return run


def links(pid):
    """How many links of probes a pyprofd has."""
    count = 0
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii") as file:
                count += "uprobe_multi" in file.read() or "perf_event" in os.readlink(
                    "/proc/%d/fd/%s" % (pid, name))
        except OSError:
            pass
    return count


def attached(process, settles=True):
    """Waits until a pyprofd has attached what it found, and samples.  settles: that
    stays on."""
    harness.sampling(process)
    seen = [0] * 10

    def settled():
        seen.append(links(process.pid))
        there = seen[-1] >= 2 * os.cpu_count() + 2
        return there and (not settles or len(set(seen[-10:])) == 1)
    harness.wait_for(settled, 30, "links of probes", 0.1)


def profiled(target, options=FULL):
    """A target's work from its beginning to its end, while it still holds what it has."""
    process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), target.pid, None,
                            options=["--events", "alloc", *options])
    attached(process)
    with open(target.path("begin"), "w", encoding="ascii"):
        pass
    target.wait("amounts.json", 60)
    return ended(process)


def sums(path, function):
    """The four values of all samples with a function on their stacks."""
    got = [0, 0, 0, 0]
    for sample in harness.load(path).samples:
        if function in (harness.plain(f.name) for f in sample.frames):
            got = [a + b for a, b in zip(got, sample.values)]
    return got


def check(run, amounts):
    for name, (size, count, held) in amounts.items():
        space, objects, held_space, held_objects = sums(run.out, name)
        wanted, limit = size * count, 4 * error(size, count) + 0.005 * size * count
        print("%-12s %8.1f MB, wanted %8.1f +- %5.1f; held %8.1f MB, wanted %8.1f" % (
            name, space / 1e6, wanted / 1e6, limit / 1e6, held_space / 1e6, size * held / 1e6))
        assert abs(space - wanted) <= limit, (name, space, wanted, limit, run.err)
        assert abs(objects - count) <= limit / size + 0.01 * count, (name, objects, count)
        limit = 4 * error(size, held) + 0.005 * size * held if held else 2 * MEAN
        assert abs(held_space - size * held) <= limit, (name, held_space, size * held, limit)
        assert abs(held_objects - held) <= limit / size + 1, (name, held_objects, held)


def run_target(what, env=None):
    with harness.Target("allocates.py", what, env=env) as target:
        run = profiled(target)
        check(run, target.read("amounts.json"))
        return run


def test_totals_and_what_is_held():
    run = run_target("once")
    assert harness.load(run.out).default_sample_type == "alloc_space"


def allocators():
    """Those of Debian, by LD_PRELOAD."""
    return [(os.path.basename(path), path)
            for path in sorted(glob.glob("/usr/lib/*/libjemalloc.so.2") +
                               glob.glob("/usr/lib/*/libmimalloc.so.2"))]


def test_other_allocator(path):
    """What it maps for itself is not counted beside."""
    run = run_target("once", {"LD_PRELOAD": path})
    mapped = [s for s in harness.load(run.out).samples
              if "mmap" in s.frames[0].name and os.path.basename(path)[:11] in repr(s.frames[1])]
    assert not mapped, mapped


test_other_allocator.cases = allocators


def test_freed_by_another_thread():
    run_target("threads")


def test_fork_holds_nothing_and_frees_nothing():
    run_target("forks")


HELD_MAX = 65536  # docs/memory.md


def test_more_blocks_than_the_table_holds_are_counted():
    """What was allocated is right, and what of it is in no sum of what is held is told."""
    with harness.Target("allocates.py", "fills") as target:
        run = profiled(target)
        size, count, _ = target.read("amounts.json")["fills"]
    space, objects, _, held = sums(run.out, "fills")
    full = re.search(r"([\d,]+) blocks_full", run.err)
    assert full, run.err
    left_out = int(full.group(1).replace(",", ""))
    print("%d of %d, %d held, %d left out" % (objects, count, held, left_out))
    assert abs(space - size * count) <= 0.005 * size * count and abs(objects - count) < 300
    assert abs(held - HELD_MAX) < 300 and abs(held + left_out - count) < 300, run.err


def work(target):
    rounds, cpu_s = target.read("rounds.json")
    return rounds, cpu_s


def cost_of_round(target, seconds):
    """CPU time a round, over some seconds."""
    rounds, cpu_s = work(target)
    time.sleep(seconds)
    more, more_s = work(target)
    return (more_s - cpu_s) / max(more - rounds, 1)


def test_bound_is_kept():
    """A program that does nothing else than allocate: sums are scaled, and say so."""
    with harness.Target("allocates.py", "hot") as target:
        target.wait("rounds.json")
        before = cost_of_round(target, 1)
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), target.pid, None,
                                options=["--events", "alloc"])
        attached(process, settles=False)
        time.sleep(3)  # one period is not bounded yet
        meanwhile = cost_of_round(target, harness.times(3, 6))
        run = ended(process)
    comments = [c for c in harness.load(run.out).comments if c.startswith("probe=malloc ")]
    print("CPU time of a round: %.1f ms, meanwhile %.1f ms; %s" % (
        before * 1e3, meanwhile * 1e3, comments))
    assert meanwhile < before * 1.3, (before, meanwhile, run.err)
    assert re.search(r" on=0\.[0-9]+$", comments[0]), comments
    assert "(sums are scaled)" in run.err, run.err
    assert sums(run.out, "hot")[0], "nothing was sampled"


def test_leaks_sees_every_free():
    """With leaks=yes what is held is right, whatever that costs."""
    with harness.Target("allocates.py", "hot") as target:
        target.wait("rounds.json")
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), target.pid, None,
                                options=["--events", "alloc", "--set", "capture.leaks=yes"])
        attached(process, settles=False)
        time.sleep(2)
        run = ended(process)
    comments = [c for c in harness.load(run.out).comments if c.startswith("probe=free ")]
    assert " on=" not in comments[0], comments
    space, _, held_space, _ = sums(run.out, "hot")
    assert held_space < 4 * MEAN < space, (space, held_space)


def test_command_line():
    for words, why in ((["--events", "alloc"], "--pid"),
                       (["--set", "capture.leaks=yes", "--pid", "1"], "leaks")):
        run = harness.profile(None, None, 1, options=words, check=False)
        assert run.rc == 2 and why in run.err, (words, run)
