# SPDX-License-Identifier: BSD-2-Clause
"""Where profiles are written: files, directories, standard output, full disks, early ends."""
import glob
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import time

import harness
import test_counts

WINDOW = re.compile(r"^\d{4}-\d\d-\d\d/\d\d/(\d+)-(\d+)-([a-z0-9_]+)\.pb\.gz$")


def early_end(number):
    with harness.light() as target:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), target.pid, hz=1999,
                                duration=60)
        harness.sampling(process)
        time.sleep(1.5)
        run = harness.finish(process, 20, number)
        assert run.rc == 0, "%d: %s" % (run.rc, run.err)
        profile = harness.load(run.out)
        assert 1e9 < profile.duration_ns < 6e9, profile.duration_ns
        samples = harness.samples(run.out, pid=target.pid)
        assert harness.total(samples) > 100
        harness.expect_whole(samples)


def test_sigint_still_writes():
    early_end(signal.SIGINT)


def test_sigterm_still_writes():
    early_end(signal.SIGTERM)


def windows_of(directory):
    """[(relative name, start in ms, length in ms)] of the CPU profiles, oldest first.  Files of
    other kinds may lie beside them; everything else is a mistake."""
    found = []
    for base, _, files in os.walk(directory):
        for name in files:
            relative = os.path.relpath(os.path.join(base, name), directory)
            match = WINDOW.match(relative)
            if match:
                if match.group(3) == "cpu":
                    found.append((relative, int(match.group(1)), int(match.group(2))))
            else:
                assert os.path.basename(relative).startswith(".") and "lock" in relative, (
                    "a strange file is left: " + relative)
    return sorted(found, key=lambda w: w[1])


def count_windows(directory):
    """While pyprofd writes them: windows_of() takes no unfinished file."""
    return len(glob.glob(directory + "/*/*/*-cpu.pb.gz"))


def wait_for_windows(directory, count):
    harness.wait_for(lambda: count_windows(directory) >= count, what="%d windows" % count)


def test_directory_gets_a_file_a_window():
    directory = os.path.join(harness.temporary(), "store")
    os.mkdir(directory, 0o750)
    with harness.Target("burn.py", 0) as target:
        harness.profile(target.pid, out=directory, duration=2.5, options=["--interval", "1"])
    windows = windows_of(directory)
    assert len(windows) in (3, 4), windows
    end = None
    for name, start_ms, length_ms in windows:
        path = os.path.join(directory, name)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o640, oct(os.stat(path).st_mode)
        for parent in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            assert stat.S_IMODE(os.stat(parent).st_mode) == 0o750, oct(os.stat(parent).st_mode)
        profile = harness.load(path)
        assert abs(profile.time_ns // 1000000 - start_ms) <= 1, (profile.time_ns, start_ms)
        assert abs(profile.duration_ns / 1e6 - length_ms) <= 1, (profile.duration_ns, length_ms)
        assert time.strftime("%Y-%m-%d/%H", time.gmtime(
            start_ms / 1000)) == os.path.dirname(name), name
        assert end is None or abs(start_ms - end) <= 20, "a gap between windows: %s" % windows
        end = start_ms + length_ms
        if length_ms > 900:
            samples = harness.samples(path, pid=target.pid)
            assert abs(harness.total(samples) - 499 * length_ms / 1000) < 0.1 * 499 or (
                os.getloadavg()[0] > 1.5), harness.total(samples)
    whole = end - windows[0][1]
    assert abs(whole - 2500) < 150, whole


def test_one_file_holds_exactly_the_period():
    with harness.light() as target:
        run = harness.profile(target.pid, duration=2, options=["--interval", "1"])
        profile = harness.load(run.out)
        assert abs(profile.duration_ns - 2e9) < 0.1e9, profile.duration_ns
        assert os.listdir(os.path.dirname(run.out)) == [os.path.basename(run.out)]


def test_delay():
    with harness.light() as target:
        begin = time.time()
        run = harness.profile(target.pid, duration=1, options=["--delay", "1.5"])
        assert harness.load(run.out).time_ns / 1e9 >= begin + 1.5
        assert abs(harness.load(run.out).duration_ns - 1e9) < 0.1e9


def folded_lines(data):
    lines = data.decode("utf-8").splitlines()
    assert lines
    for line in lines:
        assert re.match(r"^process \d+: .*;thread \d+: .* \d+$", line), line
    return lines


def test_folded_text():
    for ending in ("folded", "txt"):
        with harness.light() as target:
            out = os.path.join(harness.temporary(), "stacks." + ending)
            harness.profile(target.pid, hz=1999, out=out, duration=1)
            with open(out, "rb") as file:
                lines = folded_lines(file.read())
            own = [x for x in lines if x.startswith("process %d: " % target.pid)]
            good = [x for x in own if re.search(
                r";_start[^;]*;.*<module> \(.*burn\.py:\d+\);.*main \(.*burn\.py:\d+\);"
                r".*burn_python \(.*burn\.py:\d+\)", x)]
            assert len(good) >= 0.8 * len(own) > 0, "\n".join(own[:5])
            assert sum(int(x.rpartition(" ")[2]) for x in own) > 60


def test_standard_output():
    with harness.light() as target:
        done = subprocess.run(harness.arguments("-", target.pid, 1999, 1), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout[:2] == b"\x1f\x8b", done.stdout[:20]
        path = os.path.join(harness.temporary(), "o.pb.gz")
        with open(path, "wb") as file:
            file.write(done.stdout)
        assert harness.total(harness.samples(path, pid=target.pid)) > 60


def test_sudo_users_file():
    with harness.light() as target:
        env = {"SUDO_UID": "65534", "SUDO_GID": "65534"}
        run = harness.profile(target.pid, duration=1, env=env)
        status = os.stat(run.out)
        assert (status.st_uid, status.st_gid) == (65534, 65534), (status.st_uid, status.st_gid)
        assert stat.S_IMODE(status.st_mode) in (0o640, 0o644, 0o600), oct(status.st_mode)


def second_instance(out):
    with harness.light() as target:
        first = harness.start(out, target.pid, hz=1999, duration=4)
        harness.sampling(first)
        second = harness.profile(target.pid, out=out, duration=1, check=False)
        assert second.rc != 0, "a second instance on the same output runs"
        lines = [x for x in second.err.splitlines() if x.strip()]
        assert len(lines) == 1, second.err
        run = harness.finish(first)
        assert run.rc == 0, run.err
        return target.pid


def test_second_instance_on_a_directory():
    directory = harness.temporary()
    pid = second_instance(directory)
    windows = windows_of(directory)
    assert windows and sum(harness.total(harness.samples(os.path.join(directory, w[0]), pid=pid))
                           for w in windows) > 200


def test_second_instance_on_a_file():
    out = os.path.join(harness.temporary(), "o.pb.gz")
    pid = second_instance(out)
    assert harness.total(harness.samples(out, pid=pid)) > 200


def test_two_instances_on_two_outputs():
    with harness.light() as target:
        outs = [os.path.join(harness.temporary(), "o.pb.gz") for _ in range(2)]
        runs = [harness.start(out, target.pid, 1999, 2) for out in outs]
        for process in runs:
            run = harness.finish(process)
            assert run.rc == 0, run.err
            samples = harness.samples(run.out, pid=target.pid)
            assert harness.total(samples) > 200
            harness.expect_whole(samples)


def small_disk(size):
    directory = harness.temporary()
    point = os.path.join(directory, "disk")
    os.mkdir(point)
    harness.need(
        subprocess.call(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", point]) == 0,
        "no tmpfs can be mounted")
    return point


def fill(path):
    """Takes all room that is left."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


def test_full_disk_is_retried():
    disk = small_disk("1m")
    store = os.path.join(disk, "store")
    os.mkdir(store)
    try:
        with harness.light() as target:
            process = harness.start(store, target.pid, duration=5, options=["--interval", "1"])
            harness.sampling(process)
            wait_for_windows(store, 1)
            fill(os.path.join(disk, "ballast"))
            harness.wait_for(lambda: re.search("no space", harness.said(process), re.I),
                             what="a window that finds the disk full")
            os.unlink(os.path.join(disk, "ballast"))
            run = harness.finish(process)
            assert run.rc == 0, "%d: %s" % (run.rc, run.err)
            assert re.search("no space|full", run.err, re.I), run.err
            windows = windows_of(store)
            covered = sum(w[2] for w in windows)
            assert covered > 4500, "windows are lost: %s: %s" % (windows, run.err)
            for name, _, _ in windows:
                harness.load(os.path.join(store, name))
    finally:
        subprocess.call(["umount", "-l", disk])


def quiet_gaps(windows, slack_ms):
    """[(end of one window, begin of the next)] in ms, where they do not meet."""
    ends = [(start + length, follower[1])
            for (_, start, length), follower in zip(windows, windows[1:])]
    return [(end, begin) for end, begin in ends if abs(begin - end) > slack_ms]


def test_full_disk_loses_nothing_in_silence():
    """Full for longer than what is kept in memory: what is missing afterwards is what was said to
    be dropped, in one gap."""
    disk = small_disk("1m")
    store = os.path.join(disk, "store")
    os.mkdir(store)
    try:
        with harness.light() as target:
            process = harness.start(store, target.pid, duration=14,
                                    options=["--interval", "200ms", "--events", "cpu"])
            harness.sampling(process)
            wait_for_windows(store, 3)
            fill(os.path.join(disk, "ballast"))
            time.sleep(8)
            os.unlink(os.path.join(disk, "ballast"))
            run = harness.finish(process)
        assert run.rc == 0, "%d: %s" % (run.rc, run.err)
        told = [line for line in run.err.splitlines() if re.search("no space", line, re.I)]
        assert len(told) == 1, "one line says that the disk is full: " + run.err
        dropped = re.findall(r"([0-9]+) profiles were dropped", run.err)
        assert len(dropped) == 1 and int(dropped[0]) > 0, run.err
        # Powers of two are told while it lasts, and the sum when there is room again.
        assert len(run.err.splitlines()) < 20, run.err
        windows = windows_of(store)
        gaps = quiet_gaps(windows, 3)
        assert len(gaps) == 1, (gaps, windows, run.err)
        missing = (gaps[0][1] - gaps[0][0]) / 200.0
        # Each of 200 ms, but one that a busy machine ended late is longer.
        assert abs(missing - int(dropped[0])) <= 1 + 0.1 * missing, (
            missing, dropped, windows, run.err)
        assert windows[-1][1] + windows[-1][2] - windows[0][1] > 13500, windows
        for name, _, _ in windows:
            harness.load(os.path.join(store, name))
    finally:
        subprocess.call(["umount", "-l", disk])


def test_full_disk_to_the_end():
    disk = small_disk("64k")
    out = os.path.join(disk, "o.pb.gz")
    try:
        with harness.light() as target:
            process = harness.start(out, target.pid, duration=2)
            harness.sampling(process)
            fill(os.path.join(disk, "ballast"))
            run = harness.finish(process)
            assert run.rc != 0, "a profile that cannot be written is no success: " + run.err
            assert re.search("no space|full", run.err, re.I), run.err
            assert glob.glob(disk + "/*") == [os.path.join(disk, "ballast")], os.listdir(disk)
    finally:
        subprocess.call(["umount", "-l", disk])


def loop_mount(directory):
    """A file system of its own, which can be frozen."""
    image, point = os.path.join(directory, "image"), os.path.join(directory, "disk")
    for tool in ("mkfs.ext4", "fsfreeze"):
        harness.need(shutil.which(tool), "no " + tool)
    os.mkdir(point)
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    harness.need(subprocess.call(["mkfs.ext4", "-q", image]) == 0, "mkfs.ext4 makes no file system")
    harness.need(
        subprocess.call(["mount", "-o", "loop", image, point]) == 0,
        "this kernel mounts no ext4 from a file")
    return point


def expect_no_long_turn(store):
    """By what each window says of the agent's loop while a disk stood still for 3 s."""
    profiles = [harness.load(os.path.join(store, name)) for name, _, _ in windows_of(store)]
    stalls = [test_counts.facts(profile).get("loop_stall_max_ns", 0) for profile in profiles]
    assert max(stalls) < 1.5e9, "the loop waited for the disk: %s" % stalls


def test_frozen_store_loses_nothing():
    """A disk that stands still for some windows: the loop goes on, and afterwards all of them are
    there."""
    disk = loop_mount(harness.temporary())
    store = os.path.join(disk, "store")
    os.mkdir(store)
    try:
        with harness.light() as target:
            process = harness.start(store, target.pid, duration=6, options=["--interval", "1"])
            harness.sampling(process)
            wait_for_windows(store, 1)
            subprocess.check_call(["fsfreeze", "-f", disk])
            try:
                time.sleep(3)
            finally:
                subprocess.check_call(["fsfreeze", "-u", disk])
            run = harness.finish(process)
        assert run.rc == 0, "%d: %s" % (run.rc, run.err)
        assert "could not run" not in run.err, run.err
        windows = windows_of(store)
        assert abs(sum(
            w[2] for w in windows) - 6000) < 200, "windows are lost: %s: %s" % (windows, run.err)
        expect_no_long_turn(store)
    finally:
        subprocess.call(["umount", "-l", disk])


def test_frozen_timeline_stops_no_window():
    """The store's disk is another one: its windows go on, and the timeline is whole afterwards."""
    directory = harness.temporary()
    disk = loop_mount(directory)
    store, timeline = os.path.join(directory, "store"), os.path.join(disk, "t.json")
    os.mkdir(store)
    try:
        with harness.light() as target:
            process = harness.start(store, target.pid, duration=6,
                                    options=["--interval", "1", "--timeline", timeline])
            harness.sampling(process)
            time.sleep(1.5)
            subprocess.check_call(["fsfreeze", "-f", disk])
            try:
                time.sleep(3)
            finally:
                subprocess.check_call(["fsfreeze", "-u", disk])
            run = harness.finish(process)
        assert run.rc == 0, "%d: %s" % (run.rc, run.err)
        expect_no_long_turn(store)
        with open(timeline, encoding="utf-8") as file:
            assert len(json.load(file)) > 100
    finally:
        subprocess.call(["umount", "-l", disk])


def test_clock_that_is_set_loses_no_window():
    """A year on, then two years back: windows follow each other without a gap or a burst, under the
    names of their time."""
    year_s = 365 * 86400
    directory = harness.temporary()
    store, offset = os.path.join(directory, "store"), os.path.join(directory, "offset")
    os.mkdir(store)
    library = os.path.join(directory, "clock.so")
    subprocess.check_call([
        "gcc", "-O1", "-shared", "-fPIC", "-o", library,
        os.path.join(harness.TOP, "tests", "hostile", "clock.c")
    ])

    def set_clock(seconds):
        with open(offset, "r+b") as file:
            file.write(struct.pack("<q", seconds))

    with open(offset, "wb") as file:
        file.truncate(4096)
    with harness.light() as target:
        process = harness.start(store, target.pid, duration=8,
                                options=["--interval", "500ms", "--events",
                                         "cpu"], env={"LD_PRELOAD": library, "CLOCK_OFF": offset})
        harness.sampling(process)
        for seconds in (year_s, -year_s):
            wait_for_windows(store, count_windows(store) + 4)
            set_clock(seconds)
        run = harness.finish(process)
    assert run.rc == 0, "%d: %s" % (run.rc, run.err)
    windows = windows_of(store)
    years = {0: [], 1: [], -1: []}
    for window in windows:
        years[round((window[1] / 1000 - time.time()) / year_s)].append(window)
    for year, found in years.items():
        assert len(found) >= 3 and not quiet_gaps(found, 3), (year, windows, run.err)
    covered = sum(w[2] for w in windows)
    assert 7500 < covered < 8600 and len(windows) <= 18, (covered, windows, run.err)
    assert min(w[2] for w in windows[:-1]) > 100, windows  # none is replayed
    said = subprocess.run([os.path.join(os.path.dirname(harness.PYPROFD), "pyprof"), "info", store],
                          stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    assert re.search(r"\b%d\b" % len(windows), said), said


def test_unreadable_directory_is_refused():
    run = harness.profile(None, out="/proc/1/nowhere/o.pb.gz", duration=1, check=False)
    assert run.rc != 0 and len([x for x in run.err.splitlines() if x.strip()]) == 1, run.err
