# SPDX-License-Identifier: BSD-2-Clause
"""The last ten minutes: of a process that the kernel ends for want of memory, and of everything for
SIGUSR1, in kept/ of the store."""
import glob
import os
import random
import re
import shutil
import signal
import socket
import struct
import sys
import time

import harness

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "bench"))
import made_window  # noqa: E402
import reader_windows  # noqa: E402

LIMIT = 64 << 20
OOM, SIGNAL = 0, 1
START_S = 1795200000  # of the windows of reader_windows
WINDOWS = 60


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


def about(store, name):
    with open(os.path.join(store, "kept", name, "about"), encoding="utf-8") as file:
        lines = [line.partition("=") for line in file.read().splitlines()]
    return {key: value for key, _, value in lines if key != "rss"}


def functions(path, pid=None):
    return {name for sample in harness.samples(path, pid) for name in harness.names(sample)}


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
        target = eat(group, 5)
        run = harness.start(store + "/", hz=199, options=["--interval", "2"])
        harness.sampling(run)
        end(target)
        harness.wait_for(lambda: kept_of(store, target.pid), 20, "what is kept")
        run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    names = kept_of(store, target.pid)
    assert len(names) == 1, names
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z-oom-%d-python[\w.-]*" % target.pid, names[0])
    path = os.path.join(store, "kept", names[0], "cpu.pb.gz")
    samples = harness.samples(path)
    assert {sample.pid for sample in samples} == {target.pid}, other.pid
    assert functions(path) >= {"before_the_end", "at_the_end"}, functions(path)
    facts = about(store, names[0])
    assert facts["reason"] == "oom" and facts["pid"] == str(target.pid), facts
    assert facts["uid"] == str(os.getuid()) and facts["comm"].startswith("python"), facts
    assert int(facts["windows"]) >= 3 and facts["from"] < facts["time"] <= facts["to"], facts
    # All of its samples, those of its last moment too, are those of the store.
    in_store = sum(sample.count for window in glob.glob(store + "/2*/*/*-cpu.pb.gz")
                   for sample in harness.samples(window, target.pid))
    assert sum(sample.count for sample in samples) == in_store, in_store
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
    assert "at_the_end" in functions(os.path.join(store, "kept", names[0], "cpu.pb.gz"))


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
        time.sleep(2)
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
    assert about(store, names[0])["reason"] == "signal"
    path = os.path.join(store, "kept", names[0], "cpu.pb.gz")
    assert "burn_python" in functions(path, target.pid)
    assert "SIGUSR1: the last" in run.err and names[0] in run.err, run.err
    windows = sorted(glob.glob(store + "/2*/*/*-cpu.pb.gz"))
    assert len(windows) == 2, windows
    starts = [[int(word) for word in os.path.basename(window).split("-")[:2]] for window in windows]
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


def put(store, name, size, uid=None):
    directory = os.path.join(store, "kept", name)
    os.makedirs(directory)
    with open(os.path.join(directory, "cpu.pb.gz"), "wb") as file:
        file.write(os.urandom(size))
    with open(os.path.join(directory, "about"), "w", encoding="ascii") as file:
        file.write("reason=oom\n" + ("uid=%d\n" % uid if uid is not None else ""))


def test_bound_of_a_small_store_and_what_was_left_half():
    """2 MiB are for all, so that 204 KiB are for what is kept."""
    store = os.path.join(harness.temporary(), "store")
    for second in range(5):
        put(store, "2026-01-01T00000%dZ-oom-7-many" % second, 30 << 10, uid=1000)
    put(store, "2026-01-01T000000Z-oom-8-other", 60 << 10, uid=1001)
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
    sizes = sum(os.path.getsize(path) for path in glob.glob(store + "/kept/*/*"))
    assert run.rc == 0 and sizes <= (2 << 20) // 10, (sizes, kept(store), run.err)
    # The one of another user is the oldest, and has less.
    assert "2026-01-01T000000Z-oom-8-other" in kept(store), kept(store)
    assert "2026-01-01T000000Z-oom-7-many" not in kept(store), kept(store)
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
    windows = len(glob.glob(store + "/2*/*/*"))
    harness.wait_for(lambda: len(glob.glob(store + "/2*/*/*")) > windows, 20, "a window")
    run = harness.finish(run, signal_number=signal.SIGINT)
    assert run.rc == 0 and run.err.count("SIGUSR1: nothing is kept") == 1, run.err
    assert re.search(r"\d keep_failed", run.err), run.err


# Every pyprofd of the machine with a store keeps what ends here.
test_killed_process_is_kept_with_its_last_window.alone = True
test_end_in_the_last_window_of_a_run_is_kept.alone = True
test_process_that_is_not_profiled_is_not_kept.alone = True


# ---------------------------------------------------------------- the child alone

def start_child(store, name_s, is_tidying=False):
    """The child, as the agent starts it: for everything in the windows of reader_windows."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    directory = os.open(store, os.O_RDONLY)
    pid = os.posix_spawn(harness.PYPROFD, ["pyprofd-keep"], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, directory, 3),
                                       (os.POSIX_SPAWN_DUP2, theirs.fileno(), 4)])
    os.close(directory)
    theirs.close()
    request = struct.pack("<QQQQII16sII", START_S * 1000, (START_S + 600) * 1000, 20 << 20,
                          name_s * 1000, SIGNAL, 0, b"", 0, int(is_tidying))
    ours.send(request)
    return pid, ours


def wait_for_child(pid, ours):
    ours.settimeout(60)
    answer = ours.recv(256)
    ours.close()
    os.waitpid(pid, 0)
    return struct.unpack_from("<QQIIIIIi", answer)[-1]  # err


def test_kill_of_the_child_leaves_nothing_half():
    store = os.path.join(harness.temporary(), "store")
    reader_windows.write(store, WINDOWS, made_window.make(4))
    begun = time.monotonic()
    pid, ours = start_child(store, START_S)
    assert not wait_for_child(pid, ours)
    whole_s = time.monotonic() - begun
    names = set(os.listdir(os.path.join(store, "kept", kept(store)[0])))
    shutil.rmtree(store + "/kept")
    killed = 0
    for number in range(20):
        pid, ours = start_child(store, START_S + 1 + number)
        time.sleep(random.uniform(0, whole_s))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()
        killed += len(kept(store)) <= number
        for name in kept(store):
            assert set(os.listdir(os.path.join(store, "kept", name))) == names, name
    assert killed, "no child was killed before it had ended"
    pid, ours = start_child(store, START_S, is_tidying=True)
    assert not wait_for_child(pid, ours)
    assert not glob.glob(store + "/kept/.*"), os.listdir(store + "/kept")
    assert len(glob.glob(store + "/2*/*/*.pb.gz")) == WINDOWS, "the store's own windows"
