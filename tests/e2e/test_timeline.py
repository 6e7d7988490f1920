# SPDX-License-Identifier: BSD-2-Clause
"""--timeline: lanes of threads that sleep, wait for a lock and compete for the GIL, compared with
their own clocks."""
import collections
import json
import os
import signal
import time

import harness
import trace

SLEEP_S = 0.1  # targets/lanes.py


def record(target, ending, duration=3, options=()):
    path = os.path.join(harness.temporary(), "run" + ending)
    run = harness.profile(target.pid, hz=199, duration=duration,
                          options=["--timeline", path] + list(options))
    assert "timeline_full" not in run.err and "incomplete" not in run.err, run.err
    return trace.load(path), run


def of_lane(slices, lane, thread):
    return sorted((s for s in slices if s.lane == lane and s.thread == thread),
                  key=lambda s: s.start)


def inside(slices, begin, end, names=None):
    """Seconds of these slices between two moments."""
    return sum(max(0.0, min(s.end, end) - max(s.start, begin)) for s in slices
               if names is None or s.name in names)


def expect_near(got, wanted, share, what):
    assert abs(got - wanted) <= share * wanted, "%s: %.4f s, wanted %.4f s" % (what, got, wanted)


def check_no_overlap(slices):
    lanes = collections.defaultdict(list)
    for s in slices:
        lanes[s.tid, s.lane].append(s)
    for found in lanes.values():
        found.sort(key=lambda s: s.start)
        for before, after in zip(found, found[1:]):
            assert after.start >= before.end - 2e-9, (before, after)


def check_turns(slices, turns, thread, names, what):
    """The program's own intervals are what its lane shows: this wait, then a CPU, then the GIL."""
    cpu = of_lane(slices, "cpu", thread)
    begin, end = cpu[0].start, cpu[-1].end
    whole = [(a, b) for a, b in turns[thread] if a >= begin and b <= end]
    assert len(whole) >= 3, "%s: %d turns" % (what, len(whole))
    own = sum(b - a for a, b in whole)
    seen = sum(inside(cpu, a, b) for a, b in whole)
    expect_near(seen, own, 0.05, "all that the lane of %s shows" % thread)
    waits = sum(inside(cpu, a, b, names + ("run queue", "Waiting for GIL")) for a, b in whole)
    expect_near(waits, own, 0.05, what)
    return whole, cpu


def check_lanes(found, turns, pid):
    slices = found.slices
    assert {s.pid for s in slices} == {pid}, "another process is in it"
    check_no_overlap(slices)
    whole, cpu = check_turns(slices, turns, "the-sleeper", ("sleep",), "sleep and what follows")
    # Until a moment that Python sets before it sleeps: what comes between shortens it.
    slept = sum(inside(cpu, a, b, ("sleep",)) for a, b in whole) / (SLEEP_S * len(whole))
    assert 0.75 <= slept <= 1.05, "slept for %.2f of its time" % slept
    check_turns(slices, turns, "the-waiter", ("lock",), "lock and what follows")
    for thread, function in (("the-sleeper", "sleep_often"), ("the-waiter", "wait_lock"),
                             ("the-spinner-1", "spin"), ("the-spinner-2", "spin")):
        lane = of_lane(slices, "function", thread)
        share = inside([s for s in lane if harness.plain(s.name) == function], 0, 1e12) / (
            lane[-1].end - lane[0].start)
        assert share > 0.5, "%s is in %s for %.0f %% of the time" % (thread, function, 100 * share)


def check_gil(slices):
    """It is never free for long while two threads want it, and never with two at once."""
    holds = sorted((s.start, s.end, s.tid) for s in slices
                   if s.lane == "gil" and s.name == "Holding GIL")
    spinners = [of_lane(slices, "cpu", "the-spinner-%d" % i) for i in (1, 2)]
    begin = max(s[0].start for s in spinners) + 0.1
    end = min(s[-1].end for s in spinners)
    held = sum(max(0.0, min(b, end) - max(a, begin)) for a, b, _ in holds)
    # Free while the next one waits for a CPU.
    assert 0.6 <= held / (end - begin) <= 1.05, "held for %.3f of %.3f s" % (held, end - begin)
    both = 0.0
    for (_, a_end, _), (b_start, b_end, _) in zip(holds, holds[1:]):
        both += max(0.0, min(a_end, b_end) - b_start)
    assert both / held < 0.03, "two threads hold it for %.4f of %.3f s" % (both, held)
    waits = [s for s in slices if s.lane == "gil" and s.name == "Waiting for GIL"
             and s.thread.startswith("the-spinner")]
    assert waits, "nobody waits for the GIL"
    named = [s for s in waits if s.notes.get("holder")]
    # Nobody holds it while the next one is on its way.
    assert len(named) > 0.2 * len(waits), "%d of %d waits name the holder" % (
        len(named), len(waits))


def check_samples(found):
    spin = [s for s in found.instants if "spin" in s.notes.get("stack", "")]
    assert len(spin) > 20, "%d samples of %d" % (len(spin), len(found.instants))
    whole = [
        s for s in spin
        if "spin (lanes.py:" in s.notes["stack"] and "_bootstrap" in s.notes["stack"]
    ]
    assert len(whole) > 0.8 * len(spin), spin[0]


def check_whole(ending):
    with harness.Target("lanes.py", wrap=harness.AHEAD) as target:
        found, _ = record(target, ending)
        target.stop()
        check_lanes(found, target.read("turns.json"), target.pid)
        check_gil(found.slices)
        check_samples(found)


def test_perfetto():
    check_whole(".pftrace")


def test_chrome():
    check_whole(".json")


def test_gzip_with_all_events():
    with harness.Target("lanes.py") as target:
        directory = harness.temporary() + "/"
        path = directory + "run.json.gz"
        run = harness.profile(target.pid, duration=2, out=directory, options=["--timeline", path])
        assert "timeline:" in run.err, run.err
        check_samples(trace.load(path))
        assert os.stat(path).st_mode & 0o777 == 0o640


def test_signal_ends_it_whole():
    with harness.Target("lanes.py") as target:
        path = os.path.join(harness.temporary(), "run.pftrace")
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), pid=target.pid,
                                options=["--timeline", path])
        harness.sampling(process)
        time.sleep(1)
        assert harness.finish(process, signal_number=signal.SIGINT).rc == 0
        check_no_overlap(trace.load(path).slices)


def test_full_file_is_whole():
    """A small bound: the file ends early, is closed, and pyprofd says so and goes on."""
    with harness.Target("lanes.py"):
        path = os.path.join(harness.temporary(), "run.json")
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), hz=9999,
                                options=["--timeline", path, "--set", "capture.timeline-max=1M"])
        harness.wait_for(lambda: "it has reached timeline-max" in harness.said(process), 60,
                         "a full file")
        assert process.poll() is None
        assert harness.finish(process, signal_number=signal.SIGINT).rc == 0
        assert (1 << 20) * 0.8 < os.path.getsize(path) <= 1 << 20
        with open(path, encoding="utf-8") as file:
            json.load(file)
        check_no_overlap(trace.load(path).slices)


def test_unknown_ending_is_refused():
    run = harness.profile(options=["--timeline", "run.txt"], duration=1, check=False)
    assert run.rc == 2 and ".pftrace" in run.err, run


# How much of the time threads have a CPU is among what is looked at.
test_perfetto.alone = test_chrome.alone = "one a CPU"
# The same lanes by another writer, whose files test_gzip_with_all_events and
# test_full_file_is_whole look at.
test_chrome.few = False
