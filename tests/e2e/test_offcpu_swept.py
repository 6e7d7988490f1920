# SPDX-License-Identifier: BSD-2-Clause
"""Threads that have been asleep since before the profiler started are found, and counted in each
window."""
import os
import shutil
import subprocess
import time

import harness
import waits

WAITS = {"in_sleep": "sleep", "in_lock": "lock", "in_recv": "unix socket", "in_select": "poll",
         "in_queue": "lock"}
TOLERANCE = 0.02


class Asleep(harness.Target):
    """asleep.py: only a signal ends it."""

    def __init__(self, **more):
        super().__init__("asleep.py", **more)
        self.threads = self.read("threads.json")

    def poke(self, name):
        """Wakes a thread up; returns when, in ns of the wall clock."""
        with open(self.path(name), "wb", buffering=0) as fifo:
            at = time.time_ns()
            fifo.write(b"x")
        return at

    def stop(self, limit_s=20.0):
        self.process.kill()
        return super().stop(limit_s)


def of_thread(samples, tid, swept=None):
    return [s for s in samples if s.labels["tid"] == tid and (
        swept is None or ("swept" in s.labels) == swept)]


def ns(samples):
    """values[0] of an offcpu profile."""
    return sum(s.count for s in samples)


def near(got, wanted, what, tolerance=TOLERANCE):
    assert abs(got - wanted) <= tolerance * wanted, "%s: %.4f, wanted %.4f" % (what, got, wanted)


def expect_asleep(samples, name, tid, line, duration_ns):
    """One sample with the whole length, the reason, the line and the label."""
    chosen = of_thread(samples, tid)
    assert len(chosen) == 1, "%s: %d samples:%s" % (name, len(chosen), harness.show(chosen))
    sample = chosen[0]
    near(ns(chosen), duration_ns, name)
    assert sample.ns == 0, "%s: %d waits began" % (name, sample.ns)
    assert sample.labels.get("swept") == "yes", harness.text(sample)
    assert sample.labels.get("wait") == WAITS[name], harness.text(sample)
    at = [f.line for f in harness.python_frames(sample) if harness.plain(f.name) == name]
    assert at == [line], "%s: at %s, not %d: %s" % (name, at, line, harness.text(sample))
    assert harness.is_python_rooted(sample) and harness.is_rooted(sample), harness.text(sample)
    assert sample.frames[-1].kind == "kernel", harness.text(sample)


def several():
    chosen = {}
    for i in harness.interpreters():
        if i.version >= (3, 8) and not i.root:
            chosen.setdefault(i.version, i)
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def test_threads_asleep_before_the_start(interpreter):
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        with Asleep(python=interpreter) as target:
            run = harness.profile([target.pid, sleeper.pid], duration=2,
                                  options=["--events", "offcpu"])
            profile = harness.load(run.out)
            samples = harness.samples(run.out)
    finally:
        sleeper.kill()
        sleeper.wait()
    others = [s for s in samples if s.pid not in (target.pid, sleeper.pid)]
    assert not others, "nobody asked for these:" + harness.show(others)
    for name in WAITS:
        tid, line = target.threads[name]
        expect_asleep(samples, name, tid, line, profile.duration_ns)
    other = of_thread(samples, sleeper.pid)
    near(ns(other), profile.duration_ns, "sleep(1)")
    assert [s.labels["wait"] for s in other] == ["sleep"], harness.show(other)
    for pid, threads in ((target.pid, 8), (sleeper.pid, 1)):
        line = waits.ledger(profile, pid)
        assert line["threads"] == threads, line
        near(line["seconds"], threads * profile.duration_ns, "threads x wall", 0.01)
        near(waits.ledger_sum(line), line["seconds"], "the ledger's sum", 0.01)
    assert "swept_lost" not in run.err, run.err


test_threads_asleep_before_the_start.cases = several
test_threads_asleep_before_the_start.few = harness.each_chain


def test_who_wakes_is_split_without_double_count():
    with Asleep() as target:
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), target.pid,
                                duration=6, options=["--events", "offcpu"])
        harness.sampling(process)
        time.sleep(2)  # a busy machine opens its window late
        woken = target.poke("wake")
        exited = target.poke("exit")
        run = harness.finish(process)
        assert run.rc == 0, run.err
    profile = harness.load(run.out)
    samples = harness.samples(run.out, pid=target.pid)
    tid, line = target.threads["that_wakes"]
    before, after = of_thread(samples, tid, True), of_thread(samples, tid, False)
    slept = (woken - profile.time_ns) / 1e9
    assert abs(ns(before) / 1e9 - slept) < 0.05, "%.3f s before, %.3f s slept" % (
        ns(before) / 1e9, slept)
    assert {s.labels["wait"] for s in before} == {"pipe"}, harness.show(before)
    assert all(
        line in [f.line for f in harness.python_frames(s)] for s in before), harness.show(before)
    asleep = [s for s in after if s.labels["wait"] == "sleep"]
    near(ns(asleep), profile.duration_ns - slept * 1e9, "asleep again")
    near(ns(before + after), profile.duration_ns, "both together")
    gone = of_thread(samples, target.threads["that_exits"][0])
    slept = (exited - profile.time_ns) / 1e9
    assert abs(ns(gone) / 1e9 - slept) < 0.05, "%.3f s of %.3f" % (ns(gone) / 1e9, slept)
    line = waits.ledger(profile, target.pid)
    near(line["seconds"], 7 * profile.duration_ns + slept * 1e9, "threads x wall", 0.01)
    near(waits.ledger_sum(line), line["seconds"], "the ledger's sum", 0.01)


def test_once_in_each_window():
    """More windows than the dictionary keeps a stack for that nobody sends."""
    directory = harness.temporary()
    with Asleep() as target:
        harness.profile(target.pid, out=directory, duration=4, options=[
            "--interval", "200ms", "--events", "offcpu"])
    files = [os.path.join(base, n) for base, _, names in os.walk(directory) for n in names
             if n.endswith("-offcpu.pb.gz")]
    assert len(files) >= 15, files
    for path in files:
        duration_ns = harness.load(path).duration_ns
        if duration_ns < 5e7:
            continue  # the last one may be of a moment
        samples = harness.samples(path, pid=target.pid)
        for name in WAITS:
            tid, line = target.threads[name]
            expect_asleep(samples, name, tid, line, duration_ns)
        line = waits.ledger(harness.load(path.replace("-offcpu.", "-ledger.")), target.pid)
        near(line["seconds"], 8 * duration_ns, "threads x wall of a window", 0.01)


def test_who_sleeps_before_a_filter_wants_him():
    """By name, a new program is wanted only some ms after it began: it sleeps by then."""
    program = os.path.join(harness.temporary(), "late-sleeper")
    shutil.copy(shutil.which("sleep"), program)
    process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), duration=4,
                            options=["--events", "offcpu", "--comm", "^late-sleeper"])
    harness.sampling(process)
    sleeper = subprocess.Popen([program, "1000"])
    began = time.time_ns()
    try:
        run = harness.finish(process)
    finally:
        sleeper.kill()
        sleeper.wait()
    profile = harness.load(run.out)
    could = profile.time_ns + profile.duration_ns - began
    got = ns(of_thread(harness.samples(run.out), sleeper.pid))
    # Up to a tick and the time until the filters are asked again, twice on a busy machine; the two
    # clocks are not read at once.
    assert could - 1.2e9 <= got <= could + 1e7, "%.3f of %.3f s" % (got / 1e9, could / 1e9)
