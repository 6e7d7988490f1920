# SPDX-License-Identifier: BSD-2-Clause
"""Deep stacks reach their root."""
import os

import harness
import waits


def versions():
    chosen = {}
    for i in harness.interpreters():
        if i.version >= (3, 6):
            chosen.setdefault(i.version, i)
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def reaches_the_root(interpreter, depth, *mode):
    """At a rate that leaves the agent its time on a slow machine as well; test_samples_leave_...
    has the others."""
    with harness.Target("deep.py", depth, *mode, python=interpreter) as target:
        out = harness.profile_work(target.pid, 0.6, hz=199).out
    samples = harness.samples(out, pid=target.pid)
    # Walks of a millisecond are thinned to what they may cost.
    assert harness.total(samples) > 25, "%d samples" % harness.total(samples)
    harness.expect_share(samples, harness.is_python_rooted, 0.97, "Python root")
    harness.expect_share(samples, harness.is_rooted, 0.97, "native root")
    call = "deep_callback" if "cb" in mode else "deep_call"
    harness.expect_share(
        samples, lambda s: sum(harness.plain(n) == call for n in harness.names(s)) == depth, 0.97,
        "%d calls of %s" % (depth, call))


def test_1000_python_frames(interpreter):
    reaches_the_root(interpreter, 1000)


def test_200_callbacks_through_c(interpreter):
    reaches_the_root(interpreter, 200, "cb")


def test_1000_python_frames_of_a_thread(interpreter):
    reaches_the_root(interpreter, 1000, "thread")


def calls(sample, mark):
    """How many frames of the recursion are at the line with this mark."""
    with open(os.path.join(harness.TOP, "tests", "e2e", "targets", "moving.py")) as script:
        line = [n for n, text in enumerate(script, 1) if text.rstrip().endswith("# " + mark)][0]
    return sum(
        harness.plain(f.name) == "descend" and f.line == line
        for f in harness.python_frames(sample))


def test_moving_stacks_are_not_mixed(interpreter):
    """What the agent finishes may have changed since: then the stack ends there."""
    with harness.Target("moving.py", 800, python=interpreter) as target:
        out = harness.profile_work(target.pid, 0.8, hz=499).out
    samples = harness.samples(out, pid=target.pid)
    assert harness.total(samples) > 125, "%d samples" % harness.total(samples)
    first = [s for s in samples if calls(s, "first") > 400]
    second = [s for s in samples if calls(s, "second") > 400]
    assert first and second, harness.show(samples)
    harness.expect_share(samples, lambda s: not (calls(s, "first") and calls(s, "second")), 1.0,
                         "stacks that can be")


def profile_deep(interpreter, hz, duration, whole):
    """(samples, run, CPU time of the program in the run by the scheduler's clock); so many stacks
    must be whole"""
    with harness.Target("deep.py", 1000, python=interpreter, wrap=harness.AHEAD) as target:
        meter = waits.Meter(target.pid)
        run = harness.profile(target.pid, hz=hz, duration=duration)
        meter.stop()
    profile, samples = harness.load(run.out), harness.samples(run.out, pid=target.pid)
    cpu_ns = meter.between(profile.time_ns, profile.time_ns + profile.duration_ns)[0]
    harness.expect_share(samples, harness.is_rooted, whole, "native root")
    harness.expect_share(samples, harness.is_python_rooted, whole, "Python root")
    return samples, run, cpu_ns / 1e9


def test_samples_leave_the_program_its_cpu(interpreter):
    """1,999 walks a second of 0.7 ms each are more than a CPU: few of them stand for the others.
    The agent completes as many as 30 % of a CPU allow, which is all of them on a fast machine; it
    tells of the others."""
    samples, run, truth_s = profile_deep(interpreter, 1999, 2, 0.25)
    assert "samples_weighted" in run.err, run.err
    cut = [s for s in samples if not (harness.is_rooted(s) and harness.is_python_rooted(s))]
    assert not cut or "miss_dropped" in run.err, run.err
    used_s = sum(s.ns for s in samples) / 1e9
    assert 0.85 * truth_s < used_s < 1.15 * truth_s, "%.2f of %.2f s; %s" % (
        used_s, truth_s, run.err)


def test_1000_levels_at_99_hz(interpreter):
    """What the kernel side has no time for, the agent finishes; the program's time is right within
    what so many samples of such weights allow (the ends of the run are some 0.1 s)."""
    samples, run, truth_s = profile_deep(interpreter, 99, harness.times(3, 6), 0.97)
    used_s = sum(s.ns for s in samples) / 1e9
    error_s = sum((s.ns / 1e9) ** 2 / s.count for s in samples) ** 0.5
    assert abs(used_s - truth_s) < 0.1 + 4 * error_s, "%.2f of %.2f s, +- %.2f; %s" % (
        used_s, truth_s, error_s, run.err)


def oldest():
    return versions()[:1]


def newest():
    return versions()[-1:]


test_1000_python_frames.cases = versions
test_200_callbacks_through_c.cases = versions
test_1000_python_frames_of_a_thread.cases = newest
test_moving_stacks_are_not_mixed.cases = versions
for _test in (test_1000_python_frames, test_200_callbacks_through_c):
    _test.few = harness.each_chain
test_moving_stacks_are_not_mixed.few = harness.ends
test_samples_leave_the_program_its_cpu.cases = oldest
test_1000_levels_at_99_hz.cases = oldest
