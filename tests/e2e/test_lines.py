# SPDX-License-Identifier: BSD-2-Clause
"""Exact lines beside the interpreter's own line events and line_profiler on the same program, and
what is told where they cannot be."""
import json
import os
import re
import subprocess
import time

import exact
import harness
from exact import PYPROF, with_probes
from test_pyprof import python_with, run

TARGET = "lined.py"
PATH = exact.path_of(TARGET)
SOURCE = exact.source(TARGET).splitlines()
FUNCTIONS = ("step", "part", "countdown", "catches", "raises", "listed", "one", "naps", "fib",
             "threaded", "work")
NAP_S, NAPS = 0.02, 10
KILLS = harness.times(1, 3)


def line_of(text):
    """The number of the only line with this text."""
    found = [at for at, line in enumerate(SOURCE, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def by_settrace(python):
    """{function: {line: hits}}"""
    inside = "/tmp/lined-%d.json" % os.getpid()
    target = exact.Target(TARGET, python, "settrace", inside)
    target.go()
    target.end()
    with open(python.root + inside, encoding="utf-8") as file:
        return {name: {int(line): hits for line, hits in lines.items()}
                for name, lines in json.load(file).items()}


def by_pyprofd(python, what):
    """(the profile, the length of work())"""
    profile, (length,) = exact.record(exact.Target(TARGET, python), ["--lines", what])
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


def test_hits_are_those_of_line_events(python):
    truth = by_settrace(python)
    profile, length = by_pyprofd(python, "lined.py")
    found, told = lines_of(profile), exact.facts(profile, "lines")
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
    table = run("lines", "lined.py:Model.step", "--source", PATH, profile)
    # Before 3.11 nothing tells the class.
    assert ("every 'step' of the file" in table) == (python.version < (3, 11)), table
    rows = re.findall(r"^ *(\d+) +(\d+) +\S+ \S+ +\S+ \S+ +[\d.]+ %  ", table, re.M)
    assert {int(line): int(hits) for line, hits in rows} == {
        line: hits for line, (hits, _) in found["step"].items()
        if line < line_of("class Other") or python.version < (3, 11)
    }, table
    page = run("lines", "lined.py:Model.step", "--format", "html", "--source", PATH, profile)
    assert "<th>hits</th>" in page and "<td>1500</td>" in page, page
    recursion = line_of("return total if not depth")
    # The inner calls are not in the time of the line that makes them: it is told once.
    step = found["step"]
    assert step[recursion][0] == 5, step
    whole = sum(ns for _, ns in step.values())
    assert step[recursion][1] < 0.5 * whole, step


test_hits_are_those_of_line_events.cases = lambda: [(one.label, one) for one in with_probes()]
test_one_function_alone_is_kept.cases = test_hits_are_those_of_line_events.cases
test_hits_are_those_of_line_events.few = harness.ends
test_one_function_alone_is_kept.few = harness.newest

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
    theirs = json.loads(subprocess.check_output([python, "-c", PROFILED, PATH]).decode())
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
    target = exact.Target(TARGET, with_probes()[-1])
    shown = subprocess.Popen([PYPROF, "lines", "lined.py:fib", "--exact", "--pid",
                              str(target.pid), "--for", "3", *exact.UNBOUND],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    target.go()
    table, err = shown.communicate(timeout=60)
    target.end()
    assert shown.returncode == 0 and not err, (shown.returncode, err)
    row = r"^ *%d +%d +[\d.]+ \ws +[\d.]+ \ws +[\d.]+ %%  +%s$"
    assert re.search(row % (line_of("if n < 2:"), 465, "if n < 2:"), table.decode(), re.M), table
    assert re.search(row % (line_of("return fib(n - 1)"), 232, ".*fib.*"), table.decode(),
                     re.M), table
    assert "lines, exact: " in table.decode() and "countdown" not in table.decode(), table


def test_interpreters_without_probes_are_told():
    for _, said in exact.refused_without_probes(["lines", "x.py"], "line"):
        assert "pyprof lines FILE --live --pid " in said, said


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


def test_slow_program_ends_the_run_early():
    target = busy(exact.native())
    # What was counted until then is there.
    assert any(s.values[0] for s in exact.ends_early(target, ["--lines", "busy.py:turn"], "lines"))


def test_kill_leaves_no_probe():
    python = exact.native()
    target = busy(python)
    addresses = exact.semaphores(python)
    try:
        for _ in range(KILLS):
            pyprofd = exact.start_enabled(target.pid, addresses, ["--lines", "busy.py"])
            exact.kill(pyprofd, target.pid, addresses)
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
