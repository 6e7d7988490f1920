# SPDX-License-Identifier: BSD-2-Clause
"""Exact lines beside the interpreter's own line events and line_profiler on the same program, and
what is told where they cannot be."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness
from test_calls import PYPROF, raised, semaphores, with_probes
from test_pyprof import python_with, run

TARGET = os.path.join(harness.HERE, "targets", "lined.py")
SOURCE = open(TARGET, encoding="utf-8").read().splitlines()
FUNCTIONS = ("step", "part", "countdown", "catches", "raises", "listed", "one", "naps", "fib",
             "threaded", "work")
NAP_S, NAPS = 0.02, 10
KILLS = int(os.environ.get("KILLS") or 3)


def line_of(text):
    """The number of the only line with this text."""
    found = [at for at, line in enumerate(SOURCE, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def start(python, *words):
    """The target, which waits for go()."""
    path = TARGET
    if python.root:
        path = "/tmp/lined.py"
        shutil.copy(TARGET, python.root + path)
    target = subprocess.Popen([*python.command, path, *words], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd="/")
    assert target.stdout.readline() == b"ready\n"
    return target


def go(target):
    """Lets it work; the length in ns."""
    target.stdin.write(b"\n")
    target.stdin.flush()
    return int(target.stdout.readline())


def end(target):
    target.stdin.close()
    target.wait(20)


def by_settrace(python):
    """{function: {line: hits}}"""
    inside = "/tmp/lined-%d.json" % os.getpid()
    target = start(python, "settrace", inside)
    go(target)
    end(target)
    with open(python.root + inside, encoding="utf-8") as file:
        return {name: {int(line): hits for line, hits in lines.items()}
                for name, lines in json.load(file).items()}


def by_pyprofd(python, what):
    """(the profile, the length of work())"""
    target = start(python)
    profile = os.path.join(harness.temporary(), "lines.pb.gz")
    pyprofd = harness.start(profile, target.pid, hz=None, duration=60,
                            options=["-q", "--lines", what, "--max-slowdown", "1000x"])
    harness.sampling(pyprofd)
    length = go(target)
    done = harness.finish(pyprofd, signal_number=signal.SIGINT)
    end(target)
    assert done.rc == 0 and not done.err, done.err
    return profile, length


def lines_of(profile):
    """{function without its class: {line: (hits, ns)}}, of the target's file"""
    found = {}
    for sample in harness.load(profile).samples:
        frame = sample.frames[0]
        assert len(sample.frames) == 1, sample.frames
        if not frame.file.endswith("lined.py"):
            continue
        rows = found.setdefault(frame.name.rpartition(".")[2], {})
        hits, ns = rows.get(frame.line, (0, 0))
        rows[frame.line] = hits + sample.values[0], ns + sample.values[1]
    return found


def hits_of(rows):
    """Lines that were hit: of a line that was running at the start only the time is known."""
    return {line: hits for line, (hits, _) in rows.items() if hits}


def facts(profile):
    """The profile's comment on exact lines."""
    text = next(c for c in harness.load(profile).comments if c.startswith("lines "))
    return {key: int(value) for key, value in (word.split("=") for word in text.split()[1:])}


def test_hits_are_those_of_line_events(python):
    truth = by_settrace(python)
    profile, length = by_pyprofd(python, "lined.py")
    found, told = lines_of(profile), facts(profile)
    for name in FUNCTIONS:
        assert hits_of(found[name]) == truth[name], (name, found[name], truth[name])
    assert not told["unread"] and not told["unnoted"] and not told["too_deep"], told
    assert told["wanted"] >= sum(sum(lines.values()) for lines in truth.values()), told
    # A nap is one line's, without and with what it calls; all lines of work() are its length.
    nap = found["naps"][line_of("time.sleep(NAP_S)")][1] / 1e9
    within = found["work"][line_of("return naps(NAPS)")][1] / 1e9
    whole = sum(ns for _, ns in found["work"].values())
    print("naps %.1f ms, with the call %.1f ms; work() %.2f ms, %.2f by its clock" %
          (nap * 1e3, within * 1e3, whole / 1e6, length / 1e6))
    assert NAP_S * NAPS <= nap < 2 * NAP_S * NAPS, nap
    assert nap <= within, (nap, within)
    taken_off = told["hits"] * max(told["hit_ns"], told["other_hit_ns"])
    assert whole <= length * 1.01, (whole, length)
    assert whole + taken_off >= 0.97 * length, (whole, taken_off, length)


def test_one_function_alone_is_kept(python):
    profile, _ = by_pyprofd(python, "targets/lined.py:Model.step" if not python.root
                            else "/tmp/lined.py:Model.step")
    found = lines_of(profile)
    # Two have this name; the table shows the one of the class.
    assert set(found) == {"step"}, found
    table = run("lines", "lined.py:Model.step", "--source", TARGET, profile)
    # Before 3.11 nothing tells the class.
    assert ("every 'step' of the file" in table) == (python.version < (3, 11)), table
    rows = re.findall(r"^ *(\d+) +(\d+) +\S+ \S+ +\S+ \S+ +[\d.]+ %  ", table, re.M)
    assert {int(line): int(hits) for line, hits in rows} == {
        line: hits for line, (hits, _) in found["step"].items()
        if line < line_of("class Other") or python.version < (3, 11)
    }, table
    page = run("lines", "lined.py:Model.step", "--html", "--source", TARGET, profile)
    assert "<th>hits</th>" in page and "<td>1500</td>" in page, page
    recursion = line_of("return total if not depth")
    # The inner calls are not in the time of the line that makes them: it is told once.
    step = found["step"]
    assert step[recursion][0] == 5, step
    whole = sum(ns for _, ns in step.values())
    assert step[recursion][1] < 0.5 * whole, step


test_hits_are_those_of_line_events.cases = lambda: [(one.label, one) for one in with_probes()]
test_one_function_alone_is_kept.cases = test_hits_are_those_of_line_events.cases

PROFILED = """
import json, sys
import line_profiler
sys.argv = [sys.argv[1]]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
import lined
profiler = line_profiler.LineProfiler(lined.Model.step, lined.catches, lined.countdown, lined.fib,
                                      lined.naps)
profiler.enable_by_count()
lined.work()
profiler.disable_by_count()
print(json.dumps({key[2].rpartition(".")[2]: {line: hits for line, hits, _ in rows}
                  for key, rows in profiler.get_stats().timings.items()}))
"""


def test_hits_are_those_of_line_profiler():
    """Beside the program itself, not a word of which differs between versions here."""
    python = python_with("line_profiler")
    theirs = json.loads(subprocess.check_output([python, "-c", PROFILED, TARGET]).decode())
    ours = lines_of(by_pyprofd(with_probes()[-1], "lined.py")[0])
    for name, lines in theirs.items():
        wanted = {int(line): hits for line, hits in lines.items() if hits}
        mine = hits_of(ours[name])
        if name == "step":
            mine = {line: hits for line, hits in mine.items() if line in wanted}
        print(name, mine, wanted)
        assert mine == wanted, (name, mine, wanted)


def test_table_is_shown():
    """pyprof lines --exact: what a user types."""
    target = start(with_probes()[-1])
    shown = subprocess.Popen([PYPROF, "lines", "lined.py:fib", "--exact", "--pid",
                              str(target.pid), "--for", "3", "--max-slowdown", "1000x"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    go(target)
    table, err = shown.communicate(timeout=60)
    end(target)
    assert shown.returncode == 0 and not err, (shown.returncode, err)
    row = r"^ *%d +%d +[\d.]+ \ws +[\d.]+ \ws +[\d.]+ %%  +%s$"
    assert re.search(row % (line_of("if n < 2:"), 465, "if n < 2:"), table.decode(), re.M), table
    assert re.search(row % (line_of("return fib(n - 1)"), 232, ".*fib.*"), table.decode(),
                     re.M), table
    assert "lines, exact: " in table.decode() and "countdown" not in table.decode(), table


def test_interpreters_without_probes_are_told():
    """One sentence that names the interpreter and the table by sampling, exit 2, nothing else."""
    fit = [one for one in harness.interpreters() if one.version in ((3, 12), (3, 13), (3, 15))]
    harness.need(fit, "no CPython 3.12, 3.13 or 3.15 at hand")
    for one in fit:
        target = subprocess.Popen([*one.command, "-c", "input()"], stdin=subprocess.PIPE)
        time.sleep(0.5)
        done = subprocess.run([PYPROF, "lines", "x.py", "--exact", "--pid", str(target.pid),
                               "--for", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        target.kill()
        target.wait()
        said = done.stderr.decode()
        assert done.returncode == 2 and not done.stdout, (one.label, done)
        assert said.count("\n") == 1 and "has no line probes" in said, said
        assert "pyprof lines FILE --live --pid %d" % target.pid in said, said


BUSY = """
def turn(n):
    total = 0
    for i in range(n):
        total += i
    return total
while True:
    turn(1000)
"""


def busy(python):
    directory = harness.temporary()
    path = os.path.join(directory, "busy.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(BUSY)
    return subprocess.Popen([*python.command, path], stdout=subprocess.DEVNULL)


def native():
    """The newest with probes that is not in a chroot."""
    fit = [one for one in with_probes() if not one.root]
    harness.need(fit, "no CPython with line probes outside of a chroot")
    return fit[-1]


def test_slow_program_ends_the_run_early():
    target = busy(native())
    began = time.monotonic()
    done = harness.profile(target.pid, hz=None, duration=30,
                           options=["-q", "--lines", "busy.py:turn", "--max-slowdown", "2x"])
    took = time.monotonic() - began
    target.kill()
    target.wait()
    assert took < 15 and "exact lines end here" in done.err, (took, done.err)
    # What was counted until then is there.
    assert any(s.values[0] for s in harness.load(done.out).samples)


def test_kill_leaves_no_probe():
    python = native()
    target = busy(python)
    addresses = semaphores(python)
    try:
        for _ in range(KILLS):
            pyprofd = harness.start(os.path.join(harness.temporary(), "lines.pb.gz"), target.pid,
                                    hz=None, duration=60,
                                    options=["-q", "--lines", "busy.py", "--max-slowdown", "1000x"])
            harness.wait_for(lambda: raised(target.pid, addresses), what="raised semaphores")
            pyprofd.kill()
            pyprofd.wait()
            harness.wait_for(lambda: not raised(target.pid, addresses), what="lowered semaphores")
    finally:
        target.kill()
        target.wait()


CONFLICTS = {
    "nobody": (["--lines", "a.py:f", "-d", "1"], "give --pid"),
    "no end": (["--lines", "a.py:f", "--pid", "1"], "give --duration"),
    "no file": (["--lines", ":f", "--pid", "1", "-d", "1"], "names no file"),
    "no function": (["--lines", "a.py:", "--pid", "1", "-d", "1"], "names no function"),
    "event alone": (["--events", "lines", "--pid", "1", "-d", "1"], "give --lines FILE"),
    "twice": (["--lines", "a.py", "--lines", "b.py", "--pid", "1", "-d", "1"], "twice"),
    "no probes": (["--lines", "a.py", "--probes", "no", "--pid", "1", "-d", "1"], "exclude"),
    "calls": (["--lines", "a.py", "--events", "calls", "--pid", "1", "-d", "1"], "pyprofd twice"),
}


def test_pyprofd_refuses(case):
    words, said = CONFLICTS[case]
    out = os.path.join(harness.temporary(), "" if case == "calls" else "x.pb.gz")
    done = subprocess.run([harness.PYPROFD, *words, "-o", out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and not done.stdout, done
    assert said in done.stderr.decode() and done.stderr.count(b"\n") <= 2, done


test_pyprofd_refuses.cases = lambda: [(name, name) for name in CONFLICTS]
