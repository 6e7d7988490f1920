# SPDX-License-Identifier: BSD-2-Clause
"""Calls whose time cannot be told are counted."""
import contextlib
import os
import re
import subprocess
import time

import harness


@contextlib.contextmanager
def started(name):
    """(process, path of its program) of targets/NAME.c, which has begun."""
    harness.need(subprocess.call(["gcc", "--version"], stdout=subprocess.DEVNULL) == 0, "no gcc")
    program = os.path.join(harness.temporary(), name)
    subprocess.check_call(["gcc", "-O1", "-o", program,
                           os.path.join(harness.TARGETS, name + ".c")])
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process, program
        finally:
            process.kill()


def probed(process, program, function):
    """(samples, probe_unmatched) of two seconds of a function's calls."""
    run = harness.profile(
        process.pid, duration=2, options=["--probe", "uprobe:%s:%s+ret" % (program, function)])
    unmatched = re.search(r"([\d,]+) probe_unmatched", run.err)
    return harness.samples(run.out), int(unmatched.group(1).replace(",", "")) if unmatched else 0


def test_calls_that_end_by_longjmp_are_unmatched():
    with started("jumps") as (process, program):
        samples, unmatched = probed(process, program, "jumps")
    returned = sum(sample.count for sample in samples)
    assert returned > 200, returned
    # Each that jumps is followed by one that returns, but for the first and last.
    assert abs(returned - unmatched) <= 2, (returned, unmatched)


def test_calls_that_return_are_matched_while_links_come_and_go():
    """The function is called far more often than --max-slowdown allows: its links come and go."""
    with started("returns") as (process, program):
        samples, unmatched = probed(process, program, "returns")
    assert sum(sample.count for sample in samples) > 100000, samples
    # One call may be under way whenever the links have come.
    assert unmatched <= 10, unmatched


# ---- forks ----

HOLD_S, FORK_S = 4, 1.5


def hold(seconds, python, directory):
    """A process of that interpreter that keeps the lock of its mappings."""
    script = os.path.join(harness.HERE, "targets", "holds_lock.py")
    holder = subprocess.Popen([python, script, str(seconds)], cwd=directory,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert holder.stdout.readline() == b"held\n"
    return holder


def longest_fork(until):
    """In s, of forks as long as `until` runs."""
    longest = 0
    while until.poll() is None:
        began = time.monotonic()
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.01)
    return longest


def probed_python(probe):
    """The system's Python, if it has that probe."""
    python = "/usr/bin/python3"
    harness.need(os.path.exists("/dev/fuse"), "no FUSE")
    notes = subprocess.run(["readelf", "-nW", os.path.realpath(python)], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    harness.need(probe in notes, "the system's Python has no probe %s" % probe.decode())
    return python


def beside_kept_lock(when, python, script, start):
    """What start(directory, pid) was, beside a process that keeps its lock at the `start` or at
    the `end`, and who kept it.  No fork of the machine waits for that.  pid: of a script."""
    directory = harness.temporary()
    other = subprocess.Popen([python, "-c", script])
    held = hold(HOLD_S, python, directory) if when == "start" else None
    pyprofd = start(directory, other.pid)
    if when == "end":
        harness.sampling(pyprofd)
        time.sleep(1.5)
        held = hold(HOLD_S, python, directory)
    longest = longest_fork(pyprofd)
    done = harness.finish(pyprofd)
    held.wait(30)
    other.kill()
    other.wait()
    print("longest fork %.3f s" % longest)
    assert longest < FORK_S, (longest, done.err)
    if when == "start":
        assert "process %d keeps the lock of its mappings" % held.pid in done.err, done.err
    return done


def test_a_kept_lock_of_mappings_holds_up_no_fork(when):
    """While probes come, and while they go: the kernel would wait for that lock."""
    done = beside_kept_lock(
        when, probed_python(b"gc__start"), "import time; time.sleep(60)",
        lambda directory, _: harness.start(os.path.join(directory, ""), hz=99, duration=3,
                                           options=["-q"]))
    assert done.rc == 0, (done.rc, done.err)


def test_exact_counts_beside_a_kept_lock_hold_up_no_fork(when):
    """They do not come as long as it is kept, which is told, and go only after it."""
    done = beside_kept_lock(
        when, probed_python(b"function__entry"), "while True: str(1)",
        lambda directory, pid: harness.start(
            os.path.join(directory, "calls.pb.gz"), pid=pid, duration=3,
            options=["-q", "--events", "calls", "--max-slowdown", "1000x"]))
    assert done.rc == (2 if when == "start" else 0), (done.rc, done.err)


# While a lock is kept no other test gets probes.  `make check` has both moments, and both ways to
# probe.
for kept, moment in ((test_a_kept_lock_of_mappings_holds_up_no_fork, "start"),
                     (test_exact_counts_beside_a_kept_lock_hold_up_no_fork, "end")):
    kept.cases = lambda: [("start", "start"), ("end", "end")]
    kept.few = lambda every, moment=moment: [case for case in every if case[1] == moment]
    kept.alone = True
