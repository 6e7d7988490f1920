# SPDX-License-Identifier: BSD-2-Clause
"""The last ten minutes: of a process that the kernel ends for want of memory, and of everything for
SIGUSR1, in kept/ of the store."""
import glob
import os
import random
import re
import signal
import subprocess
import time

import harness

LIMIT = 64 << 20


# ---------------------------------------------------------------- helpers

class MemoryGroup:
    """A memory cgroup with a limit, of version 1 or 2; programs join it by `wrap`."""

    def __init__(self, limit=LIMIT):
        first = "/sys/fs/cgroup/memory"
        if os.path.exists(first + "/memory.limit_in_bytes"):
            parent, names = first, ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        else:
            parent, names = harness.cgroup2_mount(), ["memory.max"]
        self.path = os.path.join(parent, "pyprofd-e2e-%d-%d" % (os.getpid(),
                                                                random.randrange(1 << 30)))
        os.mkdir(self.path)
        if not os.path.exists(os.path.join(self.path, names[0])):
            os.rmdir(self.path)
            raise harness.Skip("no memory controller for cgroups")
        for name in names:
            path = os.path.join(self.path, name)
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as file:
                    file.write(str(limit))
        self.wrap = ("sh", "-c", "echo $$ > %s/cgroup.procs && exec \"$@\"" % self.path, "sh")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        def removed():
            try:
                os.rmdir(self.path)
            except OSError:
                return False
            return True
        harness.wait_for(removed, what="the end of the cgroup's processes")


def kept(store, what="*"):
    """Names in kept/, oldest first, without hidden ones."""
    return sorted(os.path.basename(path) for path in glob.glob(store + "/kept/" + what))


def kept_of(store, pid):
    """Of one process: others may run out of memory meanwhile."""
    return kept(store, "*-oom-%d-*" % pid)


def windows(store, name, kind="cpu"):
    """The windows of a kind that are kept, oldest first."""
    return sorted(glob.glob(os.path.join(store, "kept", name, "*-%s.pb.gz" % kind)))


def functions(paths, pid):
    return {name for path in paths for sample in harness.samples(path, pid)
            for name in harness.names(sample)}


def eat(group, seconds=3):
    """Lets a program run out of the group's memory; returns its pid."""
    target = harness.Target("eats.py", seconds, wrap=group.wrap)
    return target


def end(target):
    open(target.path("go"), "w").close()
    status = target.process.wait(60)
    assert status == -signal.SIGKILL, (status, target.output())


# ---------------------------------------------------------------- tests

def test_killed_process_is_kept_with_its_last_window():
    store = os.path.join(harness.temporary(), "store")
    with MemoryGroup() as group, harness.light() as other:
        target = eat(group, 2.5)
        # Of this test's children; the next one has a pyprofd of all.
        run = harness.start(store + "/", os.getpid(), hz=199, options=["--interval", "1"])
        harness.sampling(run)
        end(target)
        harness.wait_for(lambda: kept_of(store, target.pid), 20, "what is kept")
        run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    names = kept_of(store, target.pid)
    assert len(names) == 1, names
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z-oom-%d-%d-python[\w.-]*"
                        % (target.pid, os.getuid()), names[0])
    paths = windows(store, names[0])
    assert len(paths) >= 3, paths
    assert functions(paths, target.pid) >= {"before_the_end", "at_the_end"}, paths
    # They are the store's own files, and all that have samples of it are there.
    inodes = {os.stat(path).st_ino for path in paths}
    for path in glob.glob(store + "/2*/*/*-cpu.pb.gz"):
        assert os.stat(path).st_ino in inodes or not harness.samples(path, target.pid), path
    # Readers take them as any directory of windows; `pyprof mem --oom` picks the process.
    pyprof = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
    table = subprocess.run([pyprof, "report", "--top", "0", "--pid", str(target.pid),
                            os.path.join(store, "kept", names[0])], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    assert "at_the_end" in table, table
    assert "ended for want of memory" in run.err, run.err
    assert "the last minutes were kept " in run.err, run.err


def test_end_in_the_last_window_of_a_run_is_kept():
    store = os.path.join(harness.temporary(), "store")
    with MemoryGroup() as group:
        target = eat(group, 0.5)
        run = harness.start(store + "/", hz=199, options=["--interval", "60"])
        harness.sampling(run)
        end(target)
        run = harness.finish(run, signal_number=signal.SIGINT)
    names = kept_of(store, target.pid)
    assert run.rc == 0 and len(names) == 1, (names, run.err)
    assert "at_the_end" in functions(windows(store, names[0]), target.pid)


def test_process_that_is_not_profiled_is_not_kept():
    store = os.path.join(harness.temporary(), "store")
    with MemoryGroup() as group, harness.light() as other:
        target = eat(group, 0.2)
        run = harness.start(store + "/", other.pid, options=["--interval", "1"])
        harness.sampling(run)
        end(target)
        time.sleep(1.5)
        run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0 and not kept(store) and "memory" not in run.err.split(";")[0], run.err


def test_signal_keeps_everything_and_cuts_the_window():
    store = os.path.join(harness.temporary(), "store")
    with harness.light() as target:
        run = harness.start(store + "/", hz=499, options=["--interval", "60"])
        harness.sampling(run)
        time.sleep(1)
        # As `systemctl kill -s USR1` does: to all processes of the service.
        pids = harness.children(run.pid)
        for pid in pids + [run.pid]:
            os.kill(pid, signal.SIGUSR1)
        harness.wait_for(lambda: kept(store, "*-signal"), 20, "what is kept")
        assert pids and set(pids) <= set(harness.children(run.pid)), "a child has ended"
        run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    names = kept(store, "*-signal")
    assert len(names) == 1, names
    assert "burn_python" in functions(windows(store, names[0]), target.pid)
    assert "SIGUSR1: the last" in run.err and names[0] in run.err, run.err
    paths = sorted(glob.glob(store + "/2*/*/*-cpu.pb.gz"))
    assert len(paths) == 2, paths
    starts = [[int(word) for word in os.path.basename(path).split("-")[:2]] for path in paths]
    assert abs(sum(starts[0]) - starts[1][0]) <= 2, starts


def test_signal_without_a_store_is_one_line():
    path = os.path.join(harness.temporary(), "out.pb.gz")
    run = harness.start(path, hz=99)
    harness.sampling(run)
    run.send_signal(signal.SIGUSR1)
    harness.wait_for(lambda: "SIGUSR1" in harness.said(run), 10, "the line")
    run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0 and os.path.exists(path), run.err
    assert run.err.count("SIGUSR1") == 1 and "--output a directory" in run.err, run.err


def put(store, name, size):
    directory = os.path.join(store, "kept", name)
    os.makedirs(directory)
    with open(os.path.join(directory, "cpu.pb.gz"), "wb") as file:
        file.write(os.urandom(size))


def test_bound_of_a_small_store_and_what_was_left_half():
    """2 MiB are for all, so that 204 KiB are for what is kept."""
    store = os.path.join(harness.temporary(), "store")
    for second in range(5):
        put(store, "2026-01-01T00000%dZ-oom-7-1000-many" % second, 30 << 10)
    put(store, "2026-01-01T000000Z-oom-8-1001-other", 60 << 10)
    put(store, ".2026-01-01T000009Z-signal.tmp", 10 << 10)
    # Of this process alone: what a busy machine does has no room beside the others.
    run = harness.start(store + "/", pid=os.getpid(), hz=99,
                        options=["--store-max", "2M", "--interval", "1"])
    harness.sampling(run)
    harness.wait_for(lambda: len(kept(store)) < 6, 20, "the oldest to go")
    run.send_signal(signal.SIGUSR1)
    harness.wait_for(lambda: kept(store, "*-signal"), 20,
                     "what is kept")
    run = harness.finish(run, signal_number=signal.SIGINT)
    # What a file takes is shared by its links.
    stats = [os.stat(path) for path in glob.glob(store + "/kept/*/*")]
    sizes = sum(stat.st_size // stat.st_nlink for stat in stats)
    assert run.rc == 0 and sizes <= (2 << 20) // 10, (sizes, kept(store), run.err)
    # The one of another user is the oldest, and has less.
    assert "2026-01-01T000000Z-oom-8-1001-other" in kept(store), kept(store)
    assert "2026-01-01T000000Z-oom-7-1000-many" not in kept(store), kept(store)
    assert not glob.glob(store + "/kept/.*.tmp"), os.listdir(store + "/kept")


def test_nothing_can_be_kept_is_one_line():
    """Something else has the name of the directory."""
    store = os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    open(os.path.join(store, "kept"), "w").close()
    run = harness.start(store + "/", hz=99, options=["--interval", "1"])
    harness.sampling(run)
    run.send_signal(signal.SIGUSR1)
    harness.wait_for(lambda: "SIGUSR1" in harness.said(run), 20, "the line")
    before = len(glob.glob(store + "/2*/*/*"))
    harness.wait_for(lambda: len(glob.glob(store + "/2*/*/*")) > before, 20, "a window")
    run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0 and run.err.count("SIGUSR1: nothing is kept") == 1, run.err
    assert re.search(r"\d keep_failed", run.err), run.err


# Every pyprofd of the machine with a store keeps what ends here.
test_killed_process_is_kept_with_its_last_window.alone = "one a CPU"
test_end_in_the_last_window_of_a_run_is_kept.alone = "one a CPU"
test_process_that_is_not_profiled_is_not_kept.alone = "one a CPU"
