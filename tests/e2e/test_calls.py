# SPDX-License-Identifier: BSD-2-Clause
"""Exact calls beside cProfile on the same program, and what is told where they cannot be."""
import os
import pstats
import re
import signal
import subprocess
import time

import exact
import harness
from exact import PYPROF, with_probes
from test_pyprof import python_with, run

CALLS = ["--events", "calls"]
TARGET = "counted.py"
FUNCTIONS = 20
PAIRS_LEAST = 130  # of 190
KILLS = harness.times(2, 5)
ATTEMPTS = harness.times(2, 3)  # at the order of own times, of which an interrupt may spoil one
SPEEDS = 2    # the fastest second of a lent machine is so many times as fast as the slowest
NAMES = set(re.findall(r'"(\w+)": [0-9]', exact.source(TARGET)))


def by_cprofile(python):
    inside = os.path.join("/tmp", "counted-%d.prof" % os.getpid())
    target = exact.Target(TARGET, python, "cprofile", inside)
    target.go()
    target.end()
    return pstats.Stats(python.root + inside)


def by_pyprof(python, *words):
    """Returns the statistics, the lengths of the outermost calls in ns, and the profile."""
    profile, lengths = exact.record(exact.Target(TARGET, python, *words), CALLS)
    out = profile + ".prof"
    run("calls", "--format", "pstats", "-o", out, profile)
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


def out_of_order(ours, theirs):
    """The pairs whose order differs, and how many pairs have one."""
    apart = [(one, other) for one in theirs for other in theirs
             if theirs[one] > SPEEDS * theirs[other]]
    return [pair for pair in apart if ours[pair[0]] <= ours[pair[1]]], len(apart)


def beside(ours, theirs):
    print("\n%-10s %21s %21s" % ("", "pyprof --exact", "cProfile"))
    for name in sorted(theirs, key=lambda name: -theirs[name][2]):
        print("%-10s" % name, *("%6d/%-5d %6.1f ms" % (found[name][1], found[name][0],
                                                        found[name][2] * 1e3)
                                for found in (ours, theirs)))


def expect_lengths(profile, lengths):
    """Own times below each thread's outermost call, with what the hits took, are its length."""
    told = exact.facts(profile, "calls")
    assert told["unmatched"] == 0 and told["unnoted"] == 0, told
    for root, length in zip(("work", "left", "right"), lengths):
        inside = [s for s in harness.load(profile).samples
                  if any(frame.name == root for frame in s.frames)]
        own = sum(s.values[0] for s in inside)
        hits = sum(s.values[1] for s in inside) * (told["entry_ns"] + told["return_ns"])
        print("%-6s own %.2f ms, hits %.2f ms, length %.2f ms" %
              (root, own / 1e6, hits / 1e6, length / 1e6))
        assert abs(own + hits - length) <= 0.01 * length, (root, own, hits, length)


def test_exact_beside_cprofile(python):
    our_own, their_own = {}, {}
    for _ in range(ATTEMPTS):
        stats = by_cprofile(python)
        counted, lengths, profile = by_pyprof(python)
        theirs, ours = of_target(stats), of_target(counted)
        beside(ours, theirs)
        assert len(theirs) == FUNCTIONS, sorted(theirs)
        for name in theirs:
            assert ours[name][:2] == theirs[name][:2], (name, ours[name], theirs[name])
        assert callers(counted) == callers(stats), set(callers(counted).items()) ^ set(
            callers(stats).items())
        expect_lengths(profile, lengths)
        keep_least(our_own, ours)
        keep_least(their_own, theirs)
        if order(our_own) == order(their_own):
            return
    # Then that of all whose times are further apart than the machine's own.
    wrong, told = out_of_order(our_own, their_own)
    print("order: %d pairs of functions of %d" % (told, FUNCTIONS * (FUNCTIONS - 1) / 2))
    assert not wrong and told >= PAIRS_LEAST, "the order of own times differs: %s" % wrong


test_exact_beside_cprofile.cases = lambda: [(one.label, one) for one in with_probes()]
test_exact_beside_cprofile.few = harness.ends


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
    python = exact.native()
    addresses = exact.semaphores(python)
    target = subprocess.Popen([*python.command, "-c", TURNS], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    float(target.stdout.readline())
    before = min(speed(target) for _ in range(10))
    for at in range(KILLS):
        pyprofd = exact.start_enabled(target.pid, addresses, CALLS)
        if not at:
            assert speed(target) > 3 * before
        exact.kill(pyprofd, target.pid, addresses)
    # A machine of others has seconds in which all is half as fast.
    after, limit = speed(target), time.monotonic() + 15
    while after >= 1.25 * before and time.monotonic() < limit:
        after = min(after, speed(target))
    print("%d kills: %.1f ms before, %.1f ms after" % (KILLS, before * 1e3, after * 1e3))
    target.stdin.close()
    target.wait(20)
    assert after < 1.25 * before, (before, after)


def test_interpreters_without_probes_are_told():
    for one, said in exact.refused_without_probes(["calls"], "function"):
        assert "pyprof calls --live --pid " in said, said
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
    python = exact.native()
    program = ("import time\ntime.sleep(1)\ndef tick(): pass\ndef run():\n for _ in range(30):\n"
               "  for _ in range(100): tick()\n  time.sleep(0.1)\nrun()")
    folder = os.path.join(harness.temporary(), "windows/")
    socket = os.path.join(harness.temporary(), "live")
    done = harness.profile(
        hz=None, duration=20, out=folder, command=[*python.command, "-c", program],
        options=["-q", "--events", "calls", "--interval", "1", "--live", socket])
    assert not done.err, done.err
    out = os.path.join(harness.temporary(), "windows.prof")
    run("calls", "--kind", "calls", "--format", "pstats", "-o", out, folder)
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
    target = subprocess.Popen(
        [*exact.native().command, "-c", TURNS.replace("sys.stdin.readline()", "1")],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    # What was counted until then is there.
    assert any(s.values[1] for s in exact.ends_early(target, CALLS, "calls"))


# That of lines ends by the same clock.
test_slow_program_ends_the_run_early.few = False


PROCESSES = 4
SEVERAL = """
import os, time
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])  # other tests have the others
for _ in range(%d):
    if os.fork() == 0:
        break
def called():
    sum(body)
body, took = range(10), 0
while took < 20e-6:
    body = range(len(body) * 2)
    began = time.process_time()
    for _ in range(1000):
        sum(body)
    took = (time.process_time() - began) / 1000
os.write(1, b"ready\\n")
while True:
    called()
""" % (PROCESSES - 1)


def test_slowdown_of_several_processes_is_that_of_one():
    """The probes take a tenth of the time of each, and each is late for want of a CPU."""
    python = with_probes()[-1]
    target = subprocess.Popen([*python.command, "-c", SEVERAL], stdout=subprocess.PIPE,
                              start_new_session=True)
    try:
        for _ in range(PROCESSES):
            assert target.stdout.readline() == b"ready\n"
        done = harness.profile(target.pid, hz=None, duration=5,
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
    """pyprof calls --exact: the table, and files that gprof2dot and snakeviz open."""
    target = exact.Target(TARGET, with_probes()[-1], "light")
    out = os.path.join(harness.temporary(), "p.prof")
    shown = subprocess.Popen([PYPROF, "calls", "--exact", "--pid", str(target.pid), "--for", "20",
                              "--format", "pstats", "-o", out, *exact.UNBOUND],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = harness.wait_for(lambda: harness.children(shown.pid), what="a pyprofd")
    harness.wait_for(lambda: len([fd for fd in os.listdir("/proc/%d/fd" % child[0])
                                  if "perf_event" in readlink(child[0], fd)]) >=
                     2 * os.cpu_count(), what="a pyprofd that counts")
    time.sleep(0.3)
    target.go()
    os.kill(child[0], signal.SIGINT)
    said, err = shown.communicate(timeout=60)
    target.end()
    assert shown.returncode == 0 and not err and not said, (shown.returncode, said, err)
    profile = by_pyprof(with_probes()[-1], "light")[2]
    table = run("calls", "--top", "0", profile)
    assert re.search(r"^ +1943/29 .* fib +", table, re.M), table
    assert of_target(pstats.Stats(out))["fib"][:2] == (29, 1943)
    drawn = subprocess.check_output([python_with("gprof2dot"), "-m", "gprof2dot", "-f", "pstats",
                                     "-n0", "-e0", out]).decode()
    assert re.search(r"fib.*1943", drawn), drawn
    said = subprocess.check_output([
        python_with("snakeviz"), "-c", "import sys, pstats; from snakeviz.stats import table_rows\n"
        "print(*[row for row in table_rows(pstats.Stats(sys.argv[1])) if 'fib' in str(row)])",
        profile + ".prof"
    ]).decode()
    assert "1943/29" in said, said


for test in (test_exact_beside_cprofile, test_kill_leaves_no_probe):
    test.alone = "one a CPU"  # times are compared
