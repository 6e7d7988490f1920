# SPDX-License-Identifier: BSD-2-Clause
"""Waits for the GIL and its holders, compared with the program's own clocks."""
import glob
import json
import os

import harness
import waits
from waits import MS, SECOND


def several():
    """Each way to find the GIL."""
    chosen = {}
    for i in harness.interpreters():
        if i.version in ((3, 8), (3, 11), (3, 12),
                         (3, 15)) and not (i.root and i.version in chosen):
            chosen[i.version] = i
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def newer():
    """A GIL for each sub-interpreter."""
    return [(label, i) for label, i in several() if i.version >= (3, 12)]


def gil(target, seconds):
    return harness.profile(target.pid, duration=seconds, hz=499, options=["--events", "gil"]).out


def in_function(name):
    return lambda s: name in (harness.plain(n) for n in harness.names(s))


def test_where_threads_wait():
    """The share of one function in all waits for the GIL."""
    directory = harness.temporary()
    command = list(
        harness.interpreter().command) + [os.path.join(harness.TARGETS, "gil.py"), "share"]
    stolen = waits.stolen_ns()
    run = harness.profile(None, hz=None, duration=None, options=[
        "--events", "gil"], command=command,
                          env={"E2E_DIR": directory, "PYTHONDONTWRITEBYTECODE": "1"})
    stolen = waits.stolen_ns() - stolen
    with open(os.path.join(directory, "gil.json"), encoding="utf-8") as file:
        truth = json.load(file)
    profile = waits.Waits(run.out, None, "gil_wait")
    here = [s for s in profile.samples if in_function("share_thread")(s)]
    everything = sum(s.ns for s in here)
    got = sum(s.ns for s in here if in_function("dot")(s)) / everything
    wanted = truth["in_dot_ns"] / truth["all_ns"]
    print("share of the GIL wait in dot(): %.4f, by its own clocks %.4f; all: %.2f s, %.2f s" % (
        got, wanted, everything / SECOND, truth["all_ns"] / SECOND))
    assert abs(got - wanted) < 0.03, (got, wanted, run.err)
    # Beyond the budget some waits stand for others.  What was stolen from the thread that had the
    # GIL is no CPU time by its clocks: they take it for a wait.
    waits.near(everything, truth["all_ns"], 0.12 if "waits_weighted" in run.err else 0.05,
               "wait for the GIL", stolen)


def test_blame(interpreter):
    """One function keeps the GIL in C code; what the others wait is its."""
    line = waits.mark_line("gil.py", "hold")
    with harness.Target("gil.py", "blame", python=interpreter) as target:
        path = gil(target, 2)
        waited, blamed = (waits.Waits(path, target.pid, v) for v in ("gil_wait", "gil_blame"))
        assert waited.ns() > SECOND, "%.3f s" % (waited.ns() / SECOND)
        at_line = blamed.ns(lambda s: waits.leaf(s) is not None and waits.leaf(s).line == line)
        assert at_line >= 0.95 * blamed.ns(), "%.3f of %.3f s:%s" % (
            at_line / SECOND, blamed.ns() / SECOND, harness.show(
                [s for s in blamed.samples if s.ns]))
        waits.near(blamed.ns(), waited.ns(), 0.01, "blame, and what is waited")
        waiters = waited.ns(in_function("waiter"))
        assert waiters > 0.9 * waited.ns(), harness.show([s for s in waited.samples if s.ns])


test_blame.cases = several
# Two places where the GIL lies: _PyRuntime to 3.11, the interpreter since.
test_blame.few = harness.ends
# On a machine that does other work pyprofd does not see each change of the GIL's holder.
test_blame.alone = True


def test_held(interpreter):
    """gil_held is the time on the CPU of who has it."""
    with harness.Target("gil.py", "held", python=interpreter) as target:
        tids = target.read("tids.json")
        meter = waits.Meter(target.pid, tid=tids["with"])
        profile = waits.Waits(gil(target, 2), target.pid, "gil_held")
        meter.stop()
        by_thread = {name: profile.ns(lambda s, t=tid: s.tid == t) for name, tid in tids.items()}
        cpu, _, _, stolen = meter.between(profile.begin_ns, profile.end_ns)
        waits.near(by_thread["with"], cpu, 0.05, "gil_held", stolen + 20 * MS)
        assert by_thread["without"] < 0.05 * cpu + 40 * MS, by_thread


test_held.cases = several
test_held.few = harness.ends


def test_sub_interpreters(interpreter):
    with harness.Target("gil.py", "subinterpreter", python=interpreter) as target:
        tids = target.read("inside.json")
        meters = [waits.Meter(target.pid, 0.02, tid) for tid in tids]
        profile = waits.Waits(gil(target, 3), target.pid, "gil_wait")
        for meter in meters:
            meter.stop()
        wall = profile.end_ns - profile.begin_ns
        for tid, meter in zip(tids, meters):
            # They never wait for anything else.
            cpu, delay, _, stolen = meter.between(profile.begin_ns, profile.end_ns)
            wanted = wall - cpu - delay
            assert wanted > 0.05 * wall, (cpu, delay)
            waits.near(profile.ns(lambda s, t=tid: s.tid == t), wanted, 0.05, "wait inside",
                       stolen + 0.05 * wall)
        main = profile.ns(lambda s, t=target.read("main.json"): s.tid == t)
        assert main < 0.02 * wall, "the main interpreter's thread is alone: %.3f s" % (
            main / SECOND)
        here = profile.ns(in_function("inside"))
        assert here > 0.95 * profile.ns(), harness.show([s for s in profile.samples if s.ns])


test_sub_interpreters.cases = newer
test_sub_interpreters.few = harness.newest


def test_free_threaded():
    """No GIL, no wait for one, no error."""
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*t/bin/python3.*t"))
                   + glob.glob("/usr/bin/python3.*t"))
    harness.need(found, "no free-threaded CPython at hand")
    python = harness.Interpreter("free-threaded", [found[-1]], (3, 13), "")
    with harness.Target("threads.py", python=python) as target:
        run = harness.profile(target.pid, duration=2, options=["--events", "gil"])
        assert not waits.Waits(run.out, target.pid, "gil_wait").ns(), run.err
