# SPDX-License-Identifier: BSD-2-Clause
"""Programs that attack what pyprofd prints and writes: their names, and what lies at the output's
path."""
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import time

import harness
from test_dump import agent, ask
from test_output import windows_of

PYTHON = "/usr/bin/python3"
# Under the journal the second line would have the priority of an error.  A process' name has 15
# bytes.
NAME = b"\n<3>\x1b[2J\xe2\x80\xae\xc2\x9b1"
NAMED = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]))
print("ready", flush=True)
while True:
    pass
"""


class Named:
    """A process with that name.  Its interpreter states a version that pyprofd does not know, which
    is worth a line."""

    def __init__(self, name):
        directory = harness.temporary()
        with open(os.path.realpath(PYTHON), "rb") as file:
            image = file.read()
        told = subprocess.check_output(
            [PYTHON, "-c", "import sys; print(sys.hexversion, sys.base_prefix)"], text=True)
        version, prefix = struct.pack("<I", int(told.split()[0])), told.split()[1]
        harness.need(version in image, "the interpreter has no Py_Version")
        path = os.path.join(directory, "python3")
        with open(path, "wb") as file:
            file.write(image.replace(version, struct.pack("<I", 0x036300f0)))
        os.chmod(path, 0o755)
        self.process = subprocess.Popen([path, "-c", NAMED, name.hex()], stdout=subprocess.PIPE,
                                        env=dict(os.environ, PYTHONHOME=prefix))
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def expect_harmless(text):
    found = re.search("[^\n -~\xa0-\uffff]|[\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
    assert not found, (found, text)


def test_names_control_no_terminal_and_no_journal():
    with Named(NAME) as target:
        process, path = agent(harness.temporary(), options=["--events", "cpu,offcpu"], out="store/")
        for verb, words in (("dump", ()), ("top", ("--count", 1)), ("report", (
                "--live", "--for", 1, "--by", "process")),
                            ("tree", ("--live", "--for", 1, "--group-by", "comm"))):
            out = ask("--pid", target.pid, "--socket", path, *words, verb=verb)
            assert "\\u202e" in out, (verb, out)
            expect_harmless(out)
        run = harness.finish(process, signal_number=2)
    lines = run.err.splitlines()
    assert [
        x for x in lines if "Python frames are not available" in x and "<3>" in x and "\\u202e" in x
    ], run.err
    assert all(x.startswith("pyprofd: ") for x in lines), run.err
    expect_harmless(run.err)


def test_names_of_files_control_no_terminal():
    path = os.path.join(harness.temporary(), "a\n\x1b[2J\u202e.pb.gz")
    with harness.light() as target:
        harness.profile(target.pid, out=path, duration=1)
    for verb, words in (("info", ()), ("report", ()), ("diff", (path,))):
        out = ask(path, *words, verb=verb)
        assert "\\u202e" in out, (verb, out)
        expect_harmless(out)
    with open(path, "wb") as file:
        file.write(b"x")
    out = ask(path, verb="info", rc=2)
    assert out.count("\n") == 1 and "\\u202e" in out, out
    expect_harmless(out)


# -------------------------------------------------- what lies at the path of the output

USER = 54321


def shared_directory():
    """As /tmp: everybody makes files in it, and deletes only his own."""
    directory = os.path.join(harness.temporary(), "shared")
    os.mkdir(directory)
    os.chmod(directory, 0o1777)
    return directory


def test_fifo_in_the_place_of_the_output_gets_nothing():
    for has_reader in (False, True):
        path = os.path.join(shared_directory(), "o.pb.gz")
        with harness.light() as target:
            process = harness.start(path, target.pid, duration=1)
            harness.sampling(process)
            os.mkfifo(path, 0o666)
            os.chown(path, USER, USER)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if has_reader else None
            run = harness.finish(process, 30)
            assert run.rc == 0, run.err
            if has_reader:
                assert os.read(reader, 100) == b"", "the FIFO got the profile"
                os.close(reader)
            assert stat.S_ISREG(os.lstat(path).st_mode)
            assert harness.total(harness.samples(path, pid=target.pid)) > 5


def test_timeline_does_not_go_into_a_strangers_file():
    path = os.path.join(shared_directory(), "t.json")
    with open(path, "w"):
        pass
    os.chown(path, USER, USER)
    run = harness.profile(None, duration=1, options=["--timeline", path], check=False)
    lines = run.err.splitlines()
    assert run.rc == 1 and len(lines) == 1 and path in lines[0], run.err
    assert os.path.getsize(path) == 0


def test_exports_do_not_go_into_what_a_stranger_made():
    directory = shared_directory()
    fifo, file, link = (os.path.join(directory, n) for n in ("fifo", "file", "link"))
    with harness.light() as target:
        profile = harness.profile(target.pid, duration=1).out
    os.mkfifo(fifo)
    with open(file, "w"):
        pass
    os.symlink(os.path.join(directory, "new"), link)
    for path in (fifo, file, link):
        os.chown(path, USER, USER, follow_symlinks=False)
    for path in (fifo, file, link):
        for verb, words in (("export", ("-o", path)),
                            ("calls", ("--format", "pstats", "-o", path))):
            begin = time.time()
            out = ask(profile, *words, verb=verb, rc=2, limit_s=20)
            assert out.count("\n") == 1 and path in out, out
            assert time.time() - begin < 15, "it waited"
    assert os.path.getsize(file) == 0 and sorted(os.listdir(directory)) == ["fifo", "file", "link"]


def test_exports_go_to_files_devices_and_open_descriptors():
    directory = harness.temporary()
    with harness.light() as target:
        profile = harness.profile(target.pid, duration=1).out
    folded = ask(profile, "--format", "folded", verb="export")
    assert ";" in folded
    for words in (("-o", "-"), ("-o", "/dev/stdout")):
        assert ask(profile, "--format", "folded", *words, verb="export") == folded, words
    assert ask(profile, "--format", "folded", "-o", "/dev/null", verb="export") == ""
    path = os.path.join(directory, "out")
    with open(path, "w") as file:
        file.write("x" * 100000)
    os.symlink(path, path + ".link")
    assert ask(profile, "--format", "folded", "-o", path + ".link", verb="export") == ""
    with open(path) as file:
        assert file.read() == folded
    assert os.path.islink(path + ".link")


# ---------------------------------------------------------------- time that passes without pyprofd

def test_pause_is_one_window():
    """As in a guest that was suspended."""
    store = os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    with harness.light() as target:
        process = harness.start(store, target.pid, duration=7, options=["--interval", "1"])
        harness.sampling(process)
        time.sleep(1.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        run = harness.finish(process)
    assert run.rc == 0, run.err
    windows = windows_of(store)
    lengths = [length for _, _, length in windows]
    assert max(lengths) > 2500, lengths
    # The last may be short.
    assert min(lengths[:-1]) > 400, "missed windows are replayed: %s" % lengths
    for (_, start, length), (_, following, _) in zip(windows, windows[1:]):
        assert abs(start + length - following) <= 2, windows
    assert abs(sum(lengths) - 7000) < 400, lengths
    said = [x for x in run.err.splitlines() if "one window covers" in x]
    assert len(said) == 1 and re.search(r"for [23]\.\d s", said[0]), run.err
    samples = sum(
        harness.total(harness.samples(os.path.join(store, name), pid=target.pid))
        for name, _, _ in windows)
    assert samples > 0.7 * 7 * 499 / 4 or os.getloadavg()[0] > 1.5, samples


# ---------------------------------------------------------------- kill -9

BPFTOOL = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin")
KILLS = int(os.environ.get("KILLS") or harness.times(4, 20))


def kernel_objects(pid):
    """{(kind, id)} of the BPF programs, maps and links that a process has open."""
    found = set()
    try:
        for entry in os.listdir("/proc/%d/fdinfo" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, entry)) as file:
                found.update(re.findall(r"^(prog|map|link)_id:\s*(\d+)$", file.read(), re.M))
    except FileNotFoundError:
        pass
    return found


def still_there(objects):
    there = set()
    for kind in ("prog", "map", "link"):
        told = json.loads(subprocess.check_output([BPFTOOL, "-j", kind, "show"]))
        there.update((kind, str(one["id"])) for one in told)
    return objects & there


def seconds_to_start(store):
    begin = time.monotonic()
    process = harness.start(store, options=["--interval", "1"])
    harness.sampling(process)
    return process, time.monotonic() - begin


def kill(process):
    process.kill()
    process.wait()


def profiles_of(store):
    return [
        os.path.join(base, name) for base, _, files in os.walk(store) for name in files
        if not name.startswith(".")
    ]


def test_killed_at_any_moment_leaves_whole_files_and_nothing_in_the_kernel():
    """KILLS times, one after the other into one store; `make check-long` does it 200 times."""
    harness.need(BPFTOOL, "no bpftool")
    seed = int(os.environ.get("SEED") or time.time())
    print("SEED=%d KILLS=%d" % (seed, KILLS))
    moments = random.Random(seed)
    store = os.path.join(harness.temporary(), "store/")
    process, bare_s = seconds_to_start(store)
    objects = kernel_objects(process.pid)
    assert {kind for kind, _ in objects} >= {"prog", "map"}, objects
    kill(process)
    for _ in range(KILLS):
        process = harness.start(store, options=["--interval", "1"])
        time.sleep(moments.choice((0.5, 2.5)) * moments.random())
        objects |= kernel_objects(process.pid)
        assert process.poll() is None, harness.said(process)
        kill(process)
    # A window that was being written stays under its temporary name.
    for path in profiles_of(store):
        ask(path, verb="info")
    # The kernel frees programs and maps after a grace period.
    harness.wait_for(lambda: not still_there(objects), 30,
                     "the kernel to free %d objects" % len(objects))
    process, again_s = seconds_to_start(store)
    # Two seconds are the aim; other tests run beside this one.
    assert again_s < 2 + 3 * bare_s, (bare_s, again_s)
    left = len(profiles_of(store))
    harness.wait_for(lambda: len(profiles_of(store)) > left, what="a window of its own")
    run = harness.finish(process, signal_number=2)
    assert run.rc == 0, run.err
    print("a bare start took %.2f s, one after %d kills %.2f s; %d files"
          % (bare_s, KILLS, again_s, len(profiles_of(store))))


test_killed_at_any_moment_leaves_whole_files_and_nothing_in_the_kernel.limit_s = 100 + 3 * KILLS


# ---------------------------------------------------------------- limits of the process

def run_limited(limit, number):
    path = os.path.join(harness.temporary(), "o.pb.gz")
    run = harness.profile(None, duration=0.5, out=path, check=False, limit_s=40,
                          preexec_fn=lambda: resource.setrlimit(limit, (number, number)))
    lines = run.err.splitlines()
    assert run.rc in (0, 1), "%d with a limit of %d: %s" % (run.rc, number, run.err)
    assert all(x.startswith("pyprofd: ") for x in lines), run.err
    if run.rc == 0:
        harness.load(path)
        assert not [x for x in lines if "cannot read the counters" in x], run.err
    else:
        assert lines, run.err
        assert "No such process" not in run.err and "wasn't created" not in run.err, run.err
    return run


def test_low_limits_end_in_a_profile_or_in_a_clear_line():
    works = []
    for limit, numbers in ((resource.RLIMIT_NOFILE, (8, 24, 48, 64, 96, 112, 128, 144, 160, 1024)),
                           (resource.RLIMIT_AS, [
                               n << 20 for n in (16, 32, 64, 72, 80, 96, 128, 256, 1024)
                           ])):
        numbers = harness.times([*numbers[:-1:2], numbers[-1]], numbers)
        runs = [run_limited(limit, number) for number in numbers]
        # What is too low is told before anything is opened, and by its name.
        assert runs[0].rc == 1 and runs[0].err.count(
            "\n") == 1 and "ulimit" in runs[0].err, runs[0].err
        works.append([n for n, run in zip(numbers, runs) if run.rc == 0])
    print("works with %s open files and %s MiB" % (works[0], [n >> 20 for n in works[1]]))
    assert works[1][-1:] == [1 << 30] and works[0][-1:] == [1024], works
