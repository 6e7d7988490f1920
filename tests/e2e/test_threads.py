# SPDX-License-Identifier: BSD-2-Clause
"""Threads: names, threads on a CPU, the GIL's holder, garbage collection, sub-interpreters."""
import os
import re
import subprocess

import harness
import waits
from harness import need


def several():
    """One interpreter for each way to find thread state, GIL and names."""
    chosen = {}
    for i in harness.interpreters():
        if i.version >= (3, 8):
            chosen.setdefault(i.version, i)
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def is_gil_held(sample):
    return sample.labels.get("gil") == "held"


def test_names_and_gil(interpreter):
    with harness.Target("threads.py", python=interpreter) as target:
        out = harness.profile_work(target.pid, 0.7).out
    samples = harness.samples(out, pid=target.pid)
    tids = target.read("tids.json")
    by_thread = {name: [s for s in samples if s.tid == tid] for name, tid in tids.items()}
    if target.python.root:
        # Tids in truth are as the kernel gives them: a chroot shares the pid namespace.
        assert any(by_thread.values()), "no tid matches"
    spinner, hasher = by_thread["the-spinner"], by_thread["the-hasher"]
    assert harness.total(spinner) > 60 and harness.total(hasher) > 60, (
        {n: harness.total(s) for n, s in by_thread.items()})
    for name in ("the-sleeper", "the-waiter"):
        got = harness.total(by_thread[name])
        assert got <= 0.01 * harness.total(samples), "%s: %d samples%s" % (
            name, got, harness.show(by_thread[name]))
    for name in ("the-spinner", "the-hasher"):
        harness.expect_share(by_thread[name], lambda s, n=name: s.labels.get("thread_name") == n,
                             0.97, "label thread_name=%s" % name)
    harness.expect_share(spinner, lambda s: harness.holds(s, "run", "spin"), 0.98, "spin")
    # A thread without the GIL has no attached thread state; its frames are found all the same.
    harness.expect_share(hasher, lambda s: harness.holds(s, "run", "digest"), 0.98, "digest")
    harness.expect_share(spinner, is_gil_held, 0.95, "gil=held of the spinner")
    harness.expect_share(hasher, is_gil_held, 0.0, "gil=held of the hasher", high=0.1)
    harness.expect_whole(samples)


test_names_and_gil.cases = several
test_names_and_gil.few = harness.each_chain


def test_names_in_a_pid_namespace():
    """The program knows other numbers of its threads than the host; --events gil shows who held
    it."""
    wrap = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run(wrap + ["true"], check=False).returncode:
        need([], "unshare --pid does not work here")
    with harness.Target("burn.py", 8.0, "threads", wrap=wrap) as target:
        inner = harness.wait_for(lambda: harness.children(target.pid),
                                 what="the process in the namespace")[0]
        run = harness.profile(inner, duration=3, options=["--events", "gil"])
        assert run.rc == 0, run.err
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % inner)}
        for value in ("gil_wait", "gil_blame"):
            profile = waits.Waits(run.out, inner, value)
            named = profile.ns(lambda s: s.labels.get("thread_name", "").startswith("burner-"))
            assert profile.ns() and named >= 0.9 * profile.ns(), (
                value, profile.by_label("thread_name"))
            assert {s.tid for s in profile.samples if s.ns and s.tid} <= tids, value


def test_gc_label(interpreter):
    with harness.Target("collector.py", python=interpreter) as target:
        samples = harness.samples(harness.profile_work(target.pid, 0.5).out, pid=target.pid)
        collecting = [s for s in samples if harness.holds(s, "collecting")]
        working = [s for s in samples if harness.holds(s, "working")]
        assert harness.total(collecting) > 30 and harness.total(working) > 30, harness.show(samples)
        harness.expect_share(collecting, lambda s: "gc" in s.labels, 0.9,
                             "label gc while collecting")
        harness.expect_share(working, lambda s: "gc" in s.labels, 0.0, "label gc while working",
                             high=0.02)


test_gc_label.cases = several
test_gc_label.few = harness.each_chain


def with_subinterpreters():
    code = ("import sys\ntry:\n import _interpreters\nexcept ImportError:\n import "
            "_xxsubinterpreters")
    return [("%d.%d" % i.version, i)
            for _, i in several() if i.version >= (3, 12) and subprocess.run(
                i.command + ["-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0]


def test_subinterpreters(interpreter):
    with harness.Target("subinterpreters.py", python=interpreter) as target:
        samples = harness.samples(harness.profile_work(target.pid, 0.7).out, pid=target.pid)
        sub = [s for s in samples if harness.holds(s, "in_sub")]
        main = [s for s in samples if harness.holds(s, "in_main")]
        assert not [
            s for s in samples if harness.holds(s, "in_main") and harness.holds(s, "sub_leaf")
        ]
        # Isolated interpreters have a GIL each: both compute.
        for what, chosen in (("other", sub), ("main", main)):
            assert harness.total(
                chosen) > 0.2 * harness.total(samples), "%s interpreter: %d of %d%s" % (
                    what, harness.total(chosen), harness.total(samples), harness.show(samples))
        harness.expect_share(samples, lambda s: bool(harness.names(s)), 0.97, "Python frames")
        harness.expect_whole(samples)


test_subinterpreters.cases = with_subinterpreters
test_subinterpreters.few = harness.ends


def test_subinterpreters_are_at_hand():
    need(with_subinterpreters(), "no interpreter with sub-interpreters of their own GIL")


def with_greenlets():
    found = [
        i for i in harness.interpreters()
        if not i.root and i.version >= (3, 7) and not subprocess.run(
            list(i.command) + ["-c", "import greenlet"], stderr=subprocess.DEVNULL,
            check=False).returncode
    ]
    harness.need(found, "no interpreter has the module greenlet (Debian: python3-greenlet)")
    return found[0]


def test_greenlets_have_stacks_of_their_own():
    """What lies above a greenlet on the one C stack is another one's, or overwritten."""
    with harness.Target("greenlets.py", python=with_greenlets()) as target:
        run = harness.profile_work(target.pid, 1)
    samples = [s for s in harness.samples(run.out) if harness.holds(s, "greenlet_leaf")]
    assert harness.total(samples) > 500, run.err
    harness.expect_share(samples, lambda s: harness.holds(s, "greenlet_one"), 0.68, "one",
                         high=0.82)
    harness.expect_share(
        samples, lambda s: harness.names(s) in
        (["greenlet_one", "greenlet_leaf"], ["greenlet_other", "greenlet_leaf"]), 0.97,
        "no other's frames")
    harness.expect_share(samples, lambda s: "inner_bootstrap" in s.frames[0].name or
                         "_greenlet" in s.frames[0].module, 0.97, "root")
    harness.expect_told_complete(run.err, harness.samples(run.out), 0.98,
                                 "inner_bootstrap|_greenlet")
