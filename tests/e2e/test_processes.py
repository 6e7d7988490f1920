# SPDX-License-Identifier: BSD-2-Clause
"""The lifecycle of processes: fork, exec, short-lived ones, late libraries, namespaces,
children."""
import os
import re
import signal
import subprocess
import sys
import time

import harness
from harness import need


def by_pid(samples):
    found = {}
    for sample in samples:
        found.setdefault(sample.pid, []).append(sample)
    return found


def test_fork_children_from_their_first_sample():
    with harness.Target("forks.py") as target:
        run = harness.profile(target.pid, duration=2)
        target.stop()
        pids = target.read("pids.json")
        samples = harness.samples(run.out, pids=pids)
        seen = by_pid(samples)
        assert len(seen) > max(
            10, 0.5 * len(pids)), "%d of %d children sampled" % (len(seen), len(pids))
        harness.expect_share(
            samples, lambda s: harness.holds(s, "main", "forked_work", "forked_leaf") or not s.
            frames or harness.holds(s, "main"), 0.97, "frames of forked children")
        nameless = [
            p for p, own in seen.items() if not any(harness.holds(s, "forked_work") for s in own)
        ]
        assert len(nameless) <= 0.05 * len(seen), "%d of %d children without names" % (
            len(nameless), len(seen))


def test_multiprocessing_pool():
    with harness.Target("pool.py") as target:
        run = harness.profile(target.pid, duration=3)
        target.stop()
        samples = harness.samples(run.out, pids=target.read("pids.json"))
        assert len(by_pid(samples)) >= 4
        working = [s for s in samples if harness.holds(s, "pool_leaf")]
        assert harness.total(working) >= 0.6 * harness.total(samples), harness.show(samples)
        harness.expect_share(working, harness.is_python_rooted, 0.98, "root")
        harness.expect_whole(working)


def check_leaderless(target, run):
    """The threads that are left, by name and stack, and a library that came after the main thread's
    end."""
    samples = harness.samples(run.out, pid=target.read("left.json"))
    for name in ("even", "odd"):
        own = [s for s in samples if s.labels.get("thread_name") == name]
        assert harness.total(own) > 60, (name, harness.show(samples))
        harness.expect_share(own, lambda s, n=name: harness.holds(s, "spin", n), 0.95, name)
    library = [s for s in samples if any("_decimal" in f.module for f in s.frames)]
    assert harness.total(library) > 60, harness.show(samples)
    harness.expect_share(library, lambda s: harness.holds(s, "load_later"), 0.95,
                         "the late library's caller")
    harness.expect_whole(samples, 0.95)
    assert not [s for s in samples if "comm" not in s.labels], harness.show(samples)


def leaders():
    return [("%d.%d by %s" % (i.version + (how, )), (i, how)) for i in harness.interpreters()
            if i.version in ((3, 8), (3, 10), (3, 12), (3, 13)) and not i.root
            for how in ("pid", "all")]


def test_the_main_thread_has_ended(case):
    """Before the profile: /proc/PID has nothing to say then but through another thread."""
    python, how = case
    with harness.Target("leaderless.py", "--at-once", python=python) as target:
        pid = target.read("left.json")
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            assert file.read().rpartition(")")[2].split()[0] == "Z"
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"),
                                pid if how == "pid" else None, duration=4)
        harness.sampling(process)
        open(target.path("load"), "w").close()
        run = harness.finish(process)
        assert run.rc == 0, run.err
        check_leaderless(target, run)


test_the_main_thread_has_ended.cases = leaders
test_the_main_thread_has_ended.few = harness.ends


def test_the_main_thread_ends_meanwhile():
    with harness.Target("leaderless.py") as target:
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), target.pid,
                                duration=4)
        harness.sampling(process)
        open(target.path("leave"), "w").close()
        target.wait("left.json")
        open(target.path("load"), "w").close()
        run = harness.finish(process)
        assert run.rc == 0, run.err
        check_leaderless(target, run)


def test_exec_keeps_the_pid_and_changes_the_program():
    with harness.Target("execs.py", 0) as target:
        samples = harness.samples(
            harness.profile(target.pid, hz=999, duration=2.5).out, pid=target.pid)
        both = [
            s for s in samples if harness.holds(s, "even_turn") and harness.holds(s, "odd_turn")
        ]
        assert not both, harness.show(both)
        even = [s for s in samples if harness.holds(s, "even_turn", "work_of_turn")]
        odd = [s for s in samples if harness.holds(s, "odd_turn", "work_of_turn")]
        assert harness.total(even) > 50 and harness.total(odd) > 50, harness.show(samples)
        # The rest is the interpreter that starts: exec, ld.so, imports.
        harness.expect_whole(even + odd)


def spawned(rate, hz, seconds, pid_filter=False):
    """(samples, pids of the children, their parent); every child lives within the profile."""
    with harness.Target("spawns.py", rate) as target:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"),
                                target.pid if pid_filter else None, hz)
        harness.sampling(process)
        time.sleep(seconds)
        target.stop()
        run = harness.finish(process, 30, signal.SIGINT)
        assert run.rc == 0, run.err
        return harness.samples(run.out), set(target.read("pids.json")), target.pid


def short_lived(rate, hz, seconds):
    samples, pids, _ = spawned(rate, hz, seconds)
    seen = by_pid([s for s in samples if s.pid in pids])
    # The first ones may have been half-way when the profile began.
    for pid in sorted(seen)[:3]:
        del seen[pid]
    assert len(seen) >= 5 * seconds, "%d children sampled" % len(seen)
    named = [p for p, own in seen.items() if any(harness.names(s) for s in own)]
    nameless = [s for p, own in seen.items() if p not in named for s in own]
    assert len(
        named) >= 0.95 * len(seen), "%d of %d sampled children have Python names; others:%s" % (
            len(named), len(seen), harness.show(nameless))
    worked = [
        p for p, own in seen.items() if any(harness.holds(s, "spawn_child_work") for s in own)
    ]
    idle = [s for p, own in seen.items() if p not in worked for s in own]
    assert len(worked) >= 0.95 * len(seen), "%d of %d show their function; others:%s" % (
        len(worked), len(seen), harness.show(idle, 8))


# 299: nine samples of each.  At 99 a child may, on a busy machine, be met in its start only.
def test_short_lived_20_a_second():
    short_lived(20, 299, harness.times(3, 6))


def test_short_lived_back_to_back():
    short_lived(0, 299, 6)


test_short_lived_20_a_second.alone = test_short_lived_back_to_back.alone = "one a CPU"
# As the one before, but for the rate.
test_short_lived_back_to_back.few = False


def test_short_lived_by_the_parents_pid():
    samples, pids, parent = spawned(10, 199, 2, pid_filter=True)
    strangers = [s for s in samples if s.pid not in pids | {parent}]
    assert not strangers, harness.show(strangers)
    seen = by_pid([s for s in samples if harness.holds(s, "spawn_child_work")])
    assert len(seen) > 8, "%d children named" % len(seen)


def test_programs_that_only_start_are_whole():
    """Their time is the dynamic linker's, below whose _start nothing is."""
    loop = subprocess.Popen(["sh", "-c", "while :; do /bin/ls / >/dev/null; done"])
    try:
        run = harness.profile(loop.pid, hz=999, duration=2.5)
    finally:
        loop.kill()
        loop.wait()
    linked = [s for s in harness.samples(run.out)
              if s.frames[0].module.split("/")[-1].startswith("ld-linux")]
    assert harness.total(linked) > 100, run.err
    harness.expect_share(linked, lambda s: s.frames[0].name in ("_start", "_dl_start_user"), 0.9,
                         "root")
    counted = re.search(r"([0-9,]+) no_info", run.err)
    cut = int(counted.group(1).replace(",", "")) if counted else 0
    assert cut < 0.4 * harness.total(linked), "%d linking; %s" % (harness.total(linked), run.err)


def test_programs_started_by_python_are_whole():
    """vfork has its return address in a register; exec gives the stack back while it runs."""
    loop = subprocess.Popen(list(harness.interpreter((3, 10)).command) + [
        "-c", "import subprocess\nwhile 1: subprocess.run(['/bin/true'])"])
    try:
        run = harness.profile(loop.pid, hz=999, duration=2.5)
    finally:
        loop.kill()
        loop.wait()
    samples = harness.samples(run.out)
    harness.expect_told_complete(run.err, samples, 0.93)
    forked = [s for s in samples if any("vfork" in f.name for f in harness.native_frames(s))]
    harness.expect_share(forked, lambda s: harness.holds(s, "_execute_child") and
                         not any("gap" in f.name for f in s.frames), 0.9, "vfork below Popen")


def test_library_loaded_late():
    with harness.Target("loads.py") as target:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), target.pid,
                                duration=2)
        harness.sampling(process)
        open(target.path("go"), "w").close()
        run = harness.finish(process)
        assert run.rc == 0, run.err
        late = [
            s for s in harness.samples(run.out, pid=target.pid) if harness.holds(s, "in_library")
        ]
        assert harness.total(late) > 100, harness.total(late)
        working = [s for s in late if any("lzma" in f.module for f in harness.native_frames(s))]
        assert harness.total(working) >= 0.9 * harness.total(late), harness.show(late)
        harness.expect_whole(working)


def trees():
    return [(i.label, i) for i in harness.interpreters() if i.root]


def in_namespaces(python, mode):
    import test_interpreters
    wrap = [sys.executable, os.path.join(harness.HERE, "ns_run.py"), mode, python.root]
    moved = python._replace(command=python.command[2:])
    with harness.Target("zoo.py", python=moved, wrap=wrap) as target:
        inner = harness.wait_for(lambda: harness.children(target.pid),
                                 what="the process in the namespace")[0]
        samples = harness.samples(harness.profile(inner, hz=999, duration=1.5).out, pid=inner)
        test_interpreters.check_zoo(target, samples)
        # System-wide, and started when the mount namespace is there already.
        samples = harness.samples(harness.profile(None, duration=2).out, pid=inner)
        test_interpreters.check_zoo(target, samples, minimum=60)


def test_mount_and_pid_namespace_with_chroot(python):
    in_namespaces(python, "chroot")


def test_mount_and_pid_namespace_with_pivot_root(python):
    in_namespaces(python, "pivot")


test_mount_and_pid_namespace_with_chroot.cases = lambda: trees()[:1] + trees()[-1:]
test_mount_and_pid_namespace_with_pivot_root.cases = lambda: trees()[:1] + trees()[-1:]
test_mount_and_pid_namespace_with_chroot.few = lambda every: every[:1]
test_mount_and_pid_namespace_with_pivot_root.few = harness.newest


def test_trees_are_at_hand():
    need(trees(), "no interpreter in a tree to chroot into: tests/interpreters/fetch.sh makes them")


def test_process_named_when_it_starts_after_us():
    process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), None, 999)
    harness.sampling(process)
    with harness.Target("burn.py", 0.6) as target:
        target.process.wait(60)
        run = harness.finish(process, signal_number=signal.SIGINT)
        samples = harness.samples(run.out, pid=target.pid)
        assert harness.total(samples) > 200, harness.total(samples)
        harness.expect_share(samples, lambda s: bool(harness.names(s)), 0.95, "Python frames")
        harness.expect_whole(samples)
