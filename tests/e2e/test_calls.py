# SPDX-License-Identifier: BSD-2-Clause
"""Exact calls beside cProfile on the same program, and what is told where they cannot be."""
import os
import pstats
import re
import shutil
import signal
import subprocess

import harness
from test_pyprof import run

TARGET = os.path.join(harness.HERE, "targets", "counted.py")
FUNCTIONS = 20
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


def order(found):
    return sorted(found, key=lambda name: found[name][2])


def beside(ours, theirs):
    print("\n%-10s %21s %21s" % ("", "pyprof --exact", "cProfile"))
    for name in reversed(order(theirs)):
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
    stats = by_cprofile(python)
    theirs = of_target(stats)
    assert len(theirs) == FUNCTIONS, sorted(theirs)
    for attempt in range(ATTEMPTS):
        exact, lengths, profile = by_pyprof(python)
        ours = of_target(exact)
        beside(ours, theirs)
        for name in theirs:
            assert ours[name][:2] == theirs[name][:2], (name, ours[name], theirs[name])
        assert callers(exact) == callers(stats), set(callers(exact).items()) ^ set(
            callers(stats).items())
        if order(ours) == order(theirs):
            break
    else:
        raise AssertionError("never the order of own times: %s, cProfile %s" % (order(ours),
                                                                               order(theirs)))
    expect_lengths(profile, lengths)


test_exact_beside_cprofile.cases = lambda: [(one.label, one) for one in with_probes()]
