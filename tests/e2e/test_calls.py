# SPDX-License-Identifier: BSD-2-Clause
"""Exact calls beside cProfile on the same program, and what is told where they cannot be."""
import os
import pstats
import re
import shutil
import signal
import subprocess
import time

import harness
from test_pyprof import python_with, run

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")

TARGET = os.path.join(harness.HERE, "targets", "counted.py")
FUNCTIONS = 20
KILLS = int(os.environ.get("KILLS") or 5)
ATTEMPTS = 3  # at the order of own times, of which an interrupt may spoil one
NAMES = set(re.findall(r'"(\w+)": [0-9]', open(TARGET, encoding="utf-8").read()))


def with_probes():
    """CPythons with function probes, as Debian's 3.9 and 3.11."""
    fit = []
    for one in harness.interpreters():
        if not (3, 6) <= one.version <= (3, 11):
            continue
        path = one.root + one.command[-1] if one.root else one.command[0]
        notes = subprocess.run(["readelf", "-nW", os.path.realpath(path)], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if b"function__entry" in notes:
            fit.append(one)
    return fit


def start(python, *words):
    """The target, which waits for go()."""
    return subprocess.Popen([*python.command, place(python), *words], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, cwd="/")


def place(python):
    """The target's path as the interpreter sees it."""
    if not python.root:
        return TARGET
    inside = "/tmp/counted.py"
    shutil.copy(TARGET, python.root + inside)
    return inside


def ready(target):
    assert target.stdout.readline() == b"ready\n"


def go(target):
    """Lets it work, and returns the lengths of its threads' outermost calls in s."""
    target.stdin.write(b"\n")
    target.stdin.flush()
    return [int(word) / 1e9 for word in target.stdout.readline().split()]


def end(target):
    target.stdin.close()
    target.wait(20)


def by_cprofile(python):
    inside = os.path.join("/tmp", "counted-%d.prof" % os.getpid())
    target = start(python, "cprofile", inside)
    ready(target)
    go(target)
    end(target)
    return pstats.Stats(python.root + inside)


def by_pyprof(python, check=True):
    """Returns the statistics, the lengths of the outermost calls, and the profile."""
    target = start(python)
    ready(target)
    profile = os.path.join(harness.temporary(), "calls.pb.gz")
    pyprofd = harness.start(profile, target.pid, hz=None, duration=60,
                            options=["-q", "--events", "calls", "--max-slowdown", "1000x"])
    harness.sampling(pyprofd)
    lengths = go(target)
    done = harness.finish(pyprofd, signal_number=signal.SIGINT)
    end(target)
    assert done.rc == 0, done.err
    out = profile + ".prof"
    run("calls", "--pstats", out, profile)
    return pstats.Stats(out), lengths, profile


def name_of(key):
    """The name of a function of the target, without its class; None: another file's."""
    name = key[2].rpartition(".")[2]
    return name if key[0].endswith("counted.py") and name in NAMES else None


def of_target(stats):
    """{name: (primitive calls, calls, own time)} of the target's functions."""
    return {name_of(key): value[:3] for key, value in stats.stats.items() if name_of(key)}


def callers(stats):
    """{(caller, callee): calls}"""
    return {(name_of(caller), name_of(key)): numbers[0]
            for key, value in stats.stats.items() for caller, numbers in value[4].items()
            if name_of(caller) and name_of(key)}


def order(own):
    return sorted(own, key=own.get)


def keep_least(own, found):
    """Own times, the least of some runs: interrupts add to them."""
    for name, (_, _, time_s) in found.items():
        own[name] = min(time_s, own.get(name, time_s))


def beside(ours, theirs):
    print("\n%-10s %21s %21s" % ("", "pyprof --exact", "cProfile"))
    for name in sorted(theirs, key=lambda name: -theirs[name][2]):
        print("%-10s" % name, *("%6d/%-5d %6.1f ms" % (found[name][1], found[name][0],
                                                        found[name][2] * 1e3)
                                for found in (ours, theirs)))


def facts(profile):
    """The profile's comment on exact calls."""
    text = next(c for c in harness.load(profile).comments if c.startswith("calls "))
    return {key: int(value) for key, value in (word.split("=") for word in text.split()[1:])}


def expect_lengths(profile, lengths):
    """Own times below each thread's outermost call, with what the hits took, are its length."""
    told = facts(profile)
    assert told["unmatched"] == 0 and told["unnoted"] == 0, told
    for root, length in zip(("work", "left", "right"), lengths):
        inside = [s for s in harness.load(profile).samples
                  if any(frame.name == root for frame in s.frames)]
        own = sum(s.values[0] for s in inside)
        hits = sum(s.values[1] for s in inside) * (told["entry_ns"] + told["return_ns"])
        print("%-6s own %.2f ms, hits %.2f ms, length %.2f ms" %
              (root, own / 1e6, hits / 1e6, length * 1e3))
        assert abs(own + hits - length * 1e9) <= 0.01 * length * 1e9, (root, own, hits, length)


def test_exact_beside_cprofile(python):
    our_own, their_own = {}, {}
    for _ in range(ATTEMPTS):
        stats = by_cprofile(python)
        exact, lengths, profile = by_pyprof(python)
        theirs, ours = of_target(stats), of_target(exact)
        beside(ours, theirs)
        assert len(theirs) == FUNCTIONS, sorted(theirs)
        for name in theirs:
            assert ours[name][:2] == theirs[name][:2], (name, ours[name], theirs[name])
        assert callers(exact) == callers(stats), set(callers(exact).items()) ^ set(
            callers(stats).items())
        expect_lengths(profile, lengths)
        keep_least(our_own, ours)
        keep_least(their_own, theirs)
        if order(our_own) == order(their_own):
            return
    raise AssertionError("never the order of own times: %s, cProfile %s" % (order(our_own),
                                                                           order(their_own)))


test_exact_beside_cprofile.cases = lambda: [(one.label, one) for one in with_probes()]


def semaphores(python):
    """Addresses of the counters that enable the probes of an interpreter linked to its address."""
    path = os.path.realpath(python.command[0])
    notes = subprocess.check_output(["readelf", "-nW", path]).decode()
    kind = subprocess.check_output(["readelf", "-hW", path]).decode()
    harness.need("EXEC" in kind, "%s is position-independent" % path)
    return [int(at, 16) for name, at in
            re.findall(r"Name: (\S+)\s+Location: \S+, Base: \S+, Semaphore: (\S+)", notes)
            if name in ("function__entry", "function__return", "line")]


def raised(pid, addresses):
    """The counters' sum in a process."""
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        return sum(os.pread(memory.fileno(), 2, at)[0] for at in addresses)


TURNS = """
import os, sys, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # other programs take none of its time
def inner(): pass
def turn():
    for _ in range(20000): inner()
turn()
print("ready", flush=True)
while True:
    began = time.process_time()
    for _ in range(5): turn()
    print(time.process_time() - began, flush=True)
    if not sys.stdin.readline(): break
"""


def speed(target):
    """How long some turns take now, in s of CPU time."""
    target.stdin.write(b"\n")
    target.stdin.flush()
    return float(target.stdout.readline())


def test_kill_leaves_no_probe():
    """After kill -9 during exact calls: semaphores are back, the program runs at its speed."""
    python = next((p for p in with_probes() if not p.root), None)
    harness.need(python, "no CPython with function probes outside of a chroot")
    addresses = semaphores(python)
    assert len(addresses) >= 3, addresses
    target = subprocess.Popen([*python.command, "-c", TURNS], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    ready(target)
    float(target.stdout.readline())
    before = min(speed(target) for _ in range(20))
    for at in range(KILLS):
        pyprofd = harness.start(os.path.join(harness.temporary(), "calls.pb.gz"), target.pid,
                                hz=None, duration=60,
                                options=["-q", "--events", "calls", "--max-slowdown", "1000x"])
        harness.wait_for(lambda: pyprofd.poll() is not None or raised(target.pid, addresses) >= 3,
                         what="semaphores that are raised")
        assert pyprofd.poll() is None, harness.said(pyprofd)
        if not at:
            assert speed(target) > 3 * before
        pyprofd.kill()
        pyprofd.wait()
        harness.wait_for(lambda: not raised(target.pid, addresses), what="semaphores that are back")
    # A machine of others has seconds in which all is half as fast.
    after, limit = speed(target), time.monotonic() + 15
    while after >= 1.25 * before and time.monotonic() < limit:
        after = min(after, speed(target))
    print("%d kills: %.1f ms before, %.1f ms after" % (KILLS, before * 1e3, after * 1e3))
    end(target)
    assert after < 1.25 * before, (before, after)


def test_interpreters_without_probes_are_told():
    """One sentence that names the interpreter and the table by sampling, exit 2, nothing else."""
    for one in harness.interpreters():
        if one.version in ((3, 12), (3, 13), (3, 15)):
            target = subprocess.Popen([*one.command, "-c", "input()"], stdin=subprocess.PIPE)
            time.sleep(0.5)
            done = subprocess.run([PYPROF, "calls", "--exact", "--pid", str(target.pid), "--for",
                                   "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            target.kill()
            target.wait()
            said = done.stderr.decode()
            assert done.returncode == 2 and not done.stdout, (one.label, done)
            assert said.count("\n") == 1 and "has no function probes" in said, said
            assert "pyprof calls --live --pid %d" % target.pid in said, said
            assert ("that tell of every call" in said) == (one.version == (3, 15)), said


def test_no_python_is_told():
    target = subprocess.Popen(["sleep", "60"])
    done = subprocess.run([PYPROF, "calls", "--exact", "--pid", str(target.pid)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    target.kill()
    target.wait()
    assert done.returncode == 2 and b"runs a CPython" in done.stderr, done


def test_command_in_windows():
    """A command's calls, in a directory of windows: each call is in one of them."""
    python = with_probes()[-1]
    harness.need(not python.root, "no CPython with function probes outside of a chroot")
    program = ("import time\ntime.sleep(1)\ndef tick(): pass\ndef run():\n for _ in range(30):\n"
               "  for _ in range(100): tick()\n  time.sleep(0.1)\nrun()")
    folder = os.path.join(harness.temporary(), "windows/")
    socket = os.path.join(harness.temporary(), "live")
    done = harness.profile(
        hz=None, duration=20, out=folder, command=[*python.command, "-c", program],
        options=["-q", "--events", "calls", "--interval", "1", "--live", socket])
    assert not done.err, done.err
    out = os.path.join(harness.temporary(), "windows.prof")
    run("calls", "--kind", "calls", "--pstats", out, folder)
    found = {key[2]: value for key, value in pstats.Stats(out).stats.items()}
    assert found["tick"][:2] == (3000, 3000) and found["run"][:2] == (1, 1), found
    assert 2.9 < found["run"][3] < 10, found  # a busy machine is late


CONFLICTS = {
    "nobody": ([], "give --pid"),
    "live": (["--pid", "1", "--live"], "--live"),
    "file": (["--pid", "1", "x.pb.gz"], "either a profile or --exact"),
    "since": (["--pid", "1", "--since", "1h"], "begins now"),
    "factor": (["--pid", "1", "--max-slowdown", "much"], "max-slowdown"),
}


def test_exact_refuses(case):
    words, said = CONFLICTS[case]
    done = subprocess.run([PYPROF, "calls", "--exact", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and not done.stdout, done
    assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1, done


test_exact_refuses.cases = lambda: [(name, name) for name in CONFLICTS]


def test_table_needs_exact_calls():
    sampled = harness.profile(duration=0.5, command=["sleep", "0.2"], options=["-q"]).out
    done = subprocess.run([PYPROF, "calls", "--sort", "calls", sampled], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and b"--events calls" in done.stderr, done


def test_slow_program_ends_the_run_early():
    python = with_probes()[-1]
    target = subprocess.Popen([*python.command, "-c", TURNS.replace("sys.stdin.readline()", "1")],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    done = harness.profile(target.pid, hz=None, duration=30,
                           options=["-q", "--events", "calls", "--max-slowdown", "2x"])
    took = time.monotonic() - began
    target.kill()
    target.wait()
    assert took < 15 and "exact calls end here" in done.err, (took, done.err)
    # What was counted until then is there.
    assert any(s.values[1] for s in harness.load(done.out).samples)


PROCESSES = 6
SEVERAL = """
import os, time
for _ in range(%d):
    if os.fork() == 0:
        break
def called():
    sum(body)
body, took = range(10), 0
while took < 10e-6:
    body = range(len(body) * 2)
    began = time.perf_counter()
    for _ in range(1000):
        sum(body)
    took = (time.perf_counter() - began) / 1000
os.write(1, b"ready\\n")
while True:
    called()
""" % (PROCESSES - 1)


def test_slowdown_of_several_processes_is_that_of_one():
    """The probes take a seventh of the time of each, and each is late for want of a CPU."""
    python = with_probes()[-1]
    target = subprocess.Popen([*python.command, "-c", SEVERAL], stdout=subprocess.PIPE,
                              start_new_session=True)
    try:
        for _ in range(PROCESSES):
            ready(target)
        done = harness.profile(target.pid, hz=None, duration=6,
                               options=["-q", "--events", "calls", "--max-slowdown", "2x"])
    finally:
        os.killpg(target.pid, signal.SIGKILL)
        target.wait()
    assert "exact calls end here" not in done.err, done.err
    pids = {sample.labels["pid"] for sample in harness.load(done.out).samples}
    assert len(pids) == PROCESSES, pids


def readlink(pid, fd):
    try:
        return os.readlink("/proc/%d/fd/%s" % (pid, fd))
    except OSError:
        return ""


def test_table_and_files():
    """pyprof calls --exact: the table, and a file that gprof2dot opens."""
    python = with_probes()[-1]
    target = start(python)
    ready(target)
    out = os.path.join(harness.temporary(), "p.prof")
    shown = subprocess.Popen([PYPROF, "calls", "--exact", "--pid", str(target.pid), "--for", "20",
                              "--top", "0", "--pstats", out, "--max-slowdown", "1000x"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = harness.wait_for(lambda: harness.children(shown.pid), what="a pyprofd")
    harness.wait_for(lambda: len([fd for fd in os.listdir("/proc/%d/fd" % child[0])
                                  if "perf_event" in readlink(child[0], fd)]) >=
                     2 * os.cpu_count(), what="a pyprofd that counts")
    time.sleep(0.3)
    go(target)
    os.kill(child[0], signal.SIGINT)
    table, err = shown.communicate(timeout=60)
    end(target)
    assert shown.returncode == 0 and not err, (shown.returncode, err)
    assert re.search(r"^ +1943/29 .* fib +", table.decode(), re.M), table.decode()
    assert of_target(pstats.Stats(out))["fib"][:2] == (29, 1943)
    drawn = subprocess.check_output([python_with("gprof2dot"), "-m", "gprof2dot", "-f", "pstats",
                                     "-n0", "-e0", out]).decode()
    assert re.search(r"fib.*1943", drawn), drawn


def test_snakeviz_shows_the_calls():
    python = python_with("snakeviz")
    _, _, profile = by_pyprof(with_probes()[-1])
    said = subprocess.check_output([
        python, "-c", "import sys, pstats; from snakeviz.stats import table_rows\n"
        "print(*[row for row in table_rows(pstats.Stats(sys.argv[1])) if 'fib' in str(row)])",
        profile + ".prof"
    ]).decode()
    assert "1943/29" in said, said


for test in (test_exact_beside_cprofile, test_kill_leaves_no_probe):
    test.alone = True  # times are compared
