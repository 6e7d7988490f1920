# SPDX-License-Identifier: BSD-2-Clause
"""Threads that leave the GIL inside of several interpreters: their waits, and what they compute
without it, against the programs' own clocks."""
import math
import os
import shutil
import subprocess

import harness
import waits
from harness import need

HZ = 499
SLEEP_NS = 5 * waits.MS  # turns_work.py: wait_here()
# Its functions come from whatever interpreter and C library load it.
MAKE = ["cc", "-O1", "-shared", "-fPIC", "-nostdlib"]


def one_of_each(minimum):
    chosen = {}
    for i in harness.interpreters():
        if i.version >= minimum:
            chosen.setdefault(i.version, i)
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def that_create():
    code = ("import sys\ntry:\n import _interpreters\nexcept ImportError:\n import "
            "_xxsubinterpreters")
    return [(name, i) for name, i in one_of_each((3, 8)) if subprocess.run(
        i.command + ["-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0]


def of_role(role, what):
    return lambda s: harness.holds(s, "in_" + role, what)


def check_turns(how, interpreter, roles):
    directory = harness.temporary(interpreter.root)
    if how == "served":
        need(shutil.which("cc"), "no C compiler")
        subprocess.check_call(MAKE + ["-o", os.path.join(directory, "interpreters_of_thread.so"),
                                      os.path.join(harness.TARGETS, "interpreters_of_thread.c")])
    with harness.Target("subinterpreter_turns.py", how, python=interpreter,
                        directory=directory) as target:
        stolen = waits.stolen_ns()
        out = harness.profile(target.pid, hz=HZ, duration=3, out=harness.temporary() + "/").out
        stolen = waits.stolen_ns() - stolen
        assert target.stop() == 0, target.output()
        truth = {role: target.read(role + ".json") for role in roles}
    paths = {kind: waits.windows(out, kind)[0] for kind in ("cpu", "offcpu")}
    check_waits(waits.Waits(paths["offcpu"], target.pid, "off_cpu"), truth)
    check_digests(waits.Waits(paths["cpu"], target.pid, "cpu"), truth, stolen)


def check_waits(profile, truth):
    """Sleeps alone, which are as long as the program asked for: on a busy machine what comes after
    them, for the CPU and for the GIL, is no sleep.  Where switches took more than their budget the
    sums are estimates, which say how good they are."""
    error = 4 * profile.spread(lambda s: s.labels["wait"] == "sleep")
    for role, spent in truth.items():
        got = profile.ns(
            lambda s, here=of_role(role, "wait_here"): here(s) and s.labels["wait"] == "sleep")
        low = SLEEP_NS * sum(begin >= profile.begin_ns and end <= profile.end_ns
                             for begin, end, _ in spent["wait"])
        high = profile.clipped(spent["wait"])[1]
        assert 0.97 * low - error <= got <= 1.03 * high + error, (
            "sleeps of %s: %.3f s, by its clock %.3f to %.3f, and %.3f for what is an estimate%s" %
            (role, got / 1e9, low / 1e9, high / 1e9, error / 1e9, harness.show(profile.samples, 8)))


def check_digests(profile, truth, stolen):
    """A part of what the machine's host took was the programs'; their clocks leave it out."""
    digests = [s for s in profile.samples if any(f.name == "digest_here" for f in s.frames)]
    wanted = {role: sum(profile.clipped(spent["digest"])) / 2 for role, spent in truth.items()}
    all_ns = sum(s.ns for s in digests)
    # As many as they are: beyond the budget a sample stands for others too.
    count = all_ns ** 2 / sum(s.ns ** 2 / s.count for s in digests)
    for role, ns in wanted.items():
        p = ns / sum(wanted.values())
        got = profile.ns(of_role(role, "digest_here")) / all_ns
        assert abs(got - p) < 4 * math.sqrt(
            p * (1 - p) / count), "share of %s: %.3f, by its clock %.3f%s" % (
                role, got, p, harness.show(digests, 8))
    waits.near(all_ns, sum(wanted.values()), 4 / math.sqrt(count), "digests: %s" % wanted, stolen)


def test_interpreter_with_a_thread_of_its_own(interpreter):
    check_turns("apart", interpreter, ["main", "sub"])


test_interpreter_with_a_thread_of_its_own.cases = that_create
test_interpreter_with_a_thread_of_its_own.few = harness.ends


def test_interpreter_inside_of_another(interpreter):
    check_turns("nested", interpreter, ["main", "sub"])


test_interpreter_inside_of_another.cases = that_create
test_interpreter_inside_of_another.few = harness.each_chain
# On a busy machine too few of its turns end within the profile.
test_interpreter_inside_of_another.alone = "sleepers"


def test_thread_that_serves_two_interpreters(interpreter):
    check_turns("served", interpreter, ["main", "sub", "other"])


test_thread_that_serves_two_interpreters.cases = lambda: one_of_each((3, 6))
test_thread_that_serves_two_interpreters.few = harness.ends


def test_threads_that_sleep_since_before(interpreter):
    with harness.Target("subinterpreter_turns.py", "asleep", python=interpreter) as target:
        harness.at_rest(target.pid, 2)
        out = harness.profile(target.pid, hz=None, duration=2, options=["--events", "offcpu"]).out
        target.process.kill()
    profile = waits.Waits(out, target.pid, "off_cpu")
    for role, tid in ("main", lambda s: s.tid == target.pid), ("sub",
                                                               lambda s: s.tid != target.pid):
        got = profile.ns(
            lambda s, of=tid, role=role: of(s) and harness.holds(s, role + "_sleeps", "sleep_long"))
        waits.near(got, profile.end_ns - profile.begin_ns, 0.05,
                   "%s asleep%s" % (role, harness.show(profile.samples)))


test_threads_that_sleep_since_before.cases = that_create
test_threads_that_sleep_since_before.few = harness.newest


def test_interpreters_are_at_hand():
    need(that_create(), "no interpreter with a module that creates others")
