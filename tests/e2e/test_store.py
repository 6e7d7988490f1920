# SPDX-License-Identifier: BSD-2-Clause
"""A store that is merged: what pyprof says of it does not change, whatever happens to the child
that merges.  The windows are made (tests/bench), so that hours need not pass."""
import glob
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys

import harness

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "bench"))
import made_window  # noqa: E402
import reader_windows  # noqa: E402

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
WINDOWS = 75  # of ten seconds, from 2026-11-20 18:40:00 UTC on: two times five minutes and a half
START_S = 1795200000
BEGINS, DONE = 0, 1


def make_store(directory):
    """cpu in each window, gil in some: the same samples under another kind's types."""
    store = os.path.join(directory, "store")
    sources = made_window.make(4)
    reader_windows.write(store, WINDOWS, sources)
    for path in sorted(glob.glob(store + "/*/*/*-cpu.pb.gz"))[10:50:3]:
        with open(path, "rb") as file:
            whole = reader_windows.gzip.decompress(file.read())
        whole = whole.replace(b"\x32\x07samples", b"\x32\x08gil_wait")
        with open(path.replace("-cpu.", "-gil."), "wb") as file:
            file.write(reader_windows.gzip.compress(whole))
    return store


class Merging:
    """The child, as the agent starts it."""

    def __init__(self, store):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory = os.open(store, os.O_RDONLY)
        self.pid = os.posix_spawn(
            harness.PYPROFD, ["pyprofd: store"], os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, directory, 3),
                          (os.POSIX_SPAWN_DUP2, theirs.fileno(), 4)])
        os.close(directory)
        theirs.close()

    def hear(self):
        """The next message; None: it has nothing more to do, and sleeps.  On a busy machine it
        waits for a CPU."""
        self.socket.settimeout(1)
        for _ in range(120):
            try:
                return self.socket.recv(256)
            except socket.timeout:
                with open("/proc/%d/stat" % self.pid, encoding="ascii") as file:
                    if file.read().rpartition(")")[2].split()[0] == "S":
                        return None
        raise AssertionError("the child is busy for two minutes")

    def messages(self):
        """[(what, kind, start_ms, err)] until it has nothing more to do."""
        found = []
        while True:
            message = self.hear()
            if not message:
                return found
            start_ms, err, what = struct.unpack_from("<QiI", message)
            found.append((what, message[16:].split(b"\0")[0].decode(), start_ms, err))

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.socket.close()


def merge(store):
    merging = Merging(store)
    found = merging.messages()
    merging.kill()
    return found


def views(store):
    """What pyprof says of all, of ranges, and of the difference of two."""
    at = ["@%d" % (START_S + second) for second in (95, 130, 299, 305)]
    said = []
    for kind in "cpu", "gil":
        for times in ([], ["--since", at[0], "--until", at[1]], ["--since", at[2]],
                      ["--since", at[0], "--until", at[3]]):
            said.append(pyprof("report", store, "--kind", kind, "--top", "40", *times))
    said.append(pyprof("report", store, "--until", "@%d" % (START_S + 10)))
    said.append(pyprof("diff", store, store, "--until", at[2]))
    return said


def pyprof(*words):
    done = subprocess.run([PYPROF, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.returncode, done.stdout.decode()


def files(store, ending):
    return glob.glob(store + "/*/*/*" + ending)


def test_merged_windows_are_read_as_they_were():
    directory = harness.temporary()
    store = make_store(directory)
    before = views(store)
    assert all(not status for status, _ in before), before
    found = merge(store)
    assert [one for one in found if one[0] == DONE and one[3]] == [], found
    assert len(files(store, ".merged.pb.gz")) == 5, files(store, "")  # cpu 3, gil 2
    assert not files(store, "-10000-*.pb.gz"), files(store, "")
    assert views(store) == before


def test_kills_at_any_moment_lose_no_window():
    directory = harness.temporary()
    store = make_store(directory)
    before = views(store)
    generator, kills = random.Random(5), 0
    while files(store, "-10000-*.pb.gz") and kills < 60:
        merging = Merging(store)
        # What follows a message comes while the next piece is worked on.
        for _ in range(generator.randrange(4)):
            merging.hear()
        merging.kill()
        kills += 1
        if kills % 5 == 0:
            assert views(store) == before, kills
    merge(store)
    assert views(store) == before
    assert not files(store, ".merging.pb.gz") and not files(store, "-10000-*.pb.gz")


def test_reader_beside_the_merging_misses_nothing():
    directory = harness.temporary()
    original = make_store(directory)
    expected = pyprof("report", original)[1].split("\n", 1)[1]
    for i in range(3):
        store = os.path.join(directory, "copy%d" % i)
        shutil.copytree(original, store)
        merging = Merging(store)
        for _ in range(8):
            status, said = pyprof("report", store)
            assert not status and said.split("\n", 1)[1] == expected, said
        merging.kill()


def test_broken_files_are_passed_over_and_told():
    directory = harness.temporary()
    store = make_store(directory)
    paths = sorted(files(store, "-cpu.pb.gz"))
    with open(paths[3], "r+b") as file:
        file.truncate(100)
    with open(paths[5], "wb") as file:
        file.write(b"foreign")
    os.mkfifo(paths[7] + ".fifo")
    os.rename(paths[7] + ".fifo", paths[7])
    status, said = pyprof("report", store)
    first = said.split("\n", 1)[0]
    assert not status and "3 files passed over: first %s: " % paths[3] in first, said
    assert "(%d windows)" % (WINDOWS - 3) in said, said
    status, said = pyprof("report", store, "--strict")
    assert status and paths[3] in said, said
    status, said = pyprof("report", paths[3])
    assert status and "passed over" not in said, said
    # Its group stays as it is, and the others are merged.
    found = merge(store)
    assert [(kind, bool(err)) for what, kind, _, err in found if what == DONE and err] == [
        ("cpu", True)], found
    assert len(files(store, ".merged.pb.gz")) == 4
    assert "(%d windows)" % (WINDOWS - 3) in pyprof("report", store)[1]


def test_store_that_cannot_be_written_stays_as_it_is():
    directory = harness.temporary()
    store = make_store(directory)
    before = views(store)
    for hour in glob.glob(store + "/*/*"):
        subprocess.check_call(["mount", "--bind", hour, hour])
        subprocess.check_call(["mount", "-o", "remount,ro,bind", hour])
    try:
        found = merge(store)
        assert any(err for _, _, _, err in found), found
        assert views(store) == before
    finally:
        for hour in glob.glob(store + "/*/*"):
            subprocess.check_call(["umount", hour])
    assert not files(store, ".merged.pb.gz")
