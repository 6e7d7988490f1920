# SPDX-License-Identifier: BSD-2-Clause
"""pyprof compared with cProfile, line_profiler and gprof2dot on one program: same order, shares
within noise."""
import os
import pstats
import re
import subprocess
import sys

import harness
from test_pyprof import python_with, rows, run

LESSON = os.path.join(harness.HERE, "targets", "lesson.py")
SECONDS = 2
NOISE = 4.0  # percentage points
ALONE = "one a CPU"


def sampled(python):
    return harness.profile(hz=999, duration=None, options=["-q"],
                           command=[python, LESSON, str(SECONDS)]).out


def show(what, ours, theirs):
    print("\n%-14s %8s %8s" % (what, "pyprof", "other"))
    for key in theirs:
        print("%-14s %8.1f %8.1f" % (key, ours.get(key, 0.0), theirs[key]))


def same(what, ours, theirs, count=5):
    """The first ones in the same order, but for those that are within the noise of each other."""
    show(what, ours, theirs)
    for key, share in sorted(theirs.items(), key=lambda item: -item[1])[:count]:
        assert abs(ours.get(key, 0.0) - share) <= NOISE, (what, key, ours.get(key), share)


def test_report_beside_cprofile():
    python = sys.executable
    out = os.path.join(harness.temporary(), "c.prof")
    subprocess.check_call([python, "-m", "cProfile", "-o", out, LESSON, str(SECONDS)])
    stats = pstats.Stats(out)
    names = ("chunk", "records", "scatter", "normalize", "work")
    total = {
        key[2]: 100 * value[3] / stats.total_tt for key, value in stats.stats.items()
        if key[2] in names
    }
    profile = sampled(python)
    found = rows(run("report", "--python", "--focus", "^work$", "--top", 0, profile))
    same("total %", {name: found[name][1] for name in names}, total)
    # C functions are callers' own time for pyprof --python: cProfile's callees without a file.
    own = {}
    for key, (_, _, time, _, callers) in stats.stats.items():
        if key[2] in names:
            own[key[2]] = own.get(key[2], 0) + 100 * time / stats.total_tt
        elif key[0] == "~":
            for caller, (_, _, inner, _) in callers.items():
                if caller[2] in names:
                    own[caller[2]] = own.get(caller[2], 0) + 100 * inner / stats.total_tt
    same("self %", {name: found[name][0] for name in names}, own)


def test_lines_beside_line_profiler():
    python = python_with("line_profiler")
    said = subprocess.check_output([python, LESSON, str(SECONDS), "LINES"]).decode()
    times = {}
    for name, line, seconds in (words.split() for words in said.splitlines()):
        times[name, int(line)] = float(seconds)
    whole = sum(seconds for (name, _), seconds in times.items() if name == "work")
    theirs = {"line %d" % line: 100 * seconds / whole for (_, line), seconds in times.items()}
    text = run("lines", "lesson.py", "--focus", "^work$", "--all", sampled(python))
    ours = {}
    for line in text.splitlines():
        match = re.match(r" *(\d+) (?: *[\d.]+ % +\S+|  {14,})? +([\d.]+) % +\S+ ", line)
        if match:
            ours["line %s" % match.group(1)] = float(match.group(2))
    same("line", ours, theirs)


# test_beside.py holds lines, boxes and edges against those of the same run.
def test_calls_beside_gprof2dot():
    python = python_with("gprof2dot")
    lesson = sys.executable
    out = os.path.join(harness.temporary(), "c.prof")
    subprocess.check_call([lesson, "-m", "cProfile", "-o", out, LESSON, str(SECONDS)])
    theirs = subprocess.check_output([python, "-m", "gprof2dot", "-f", "pstats", out]).decode()
    ours = run("calls", "--python", "--focus", "^work$", sampled(lesson))
    boxes = re.compile(r'label="(?:lesson:\d+:)?(\w+)\\n(?:lesson.py:\d+\\n)?([\d.]+)%')
    names = ("chunk", "records", "scatter", "normalize", "work")
    same("box %", {n: float(p) for n, p in boxes.findall(ours) if n in names},
         {n: float(p) for n, p in boxes.findall(theirs) if n in names})

test_lines_beside_line_profiler.few = test_calls_beside_gprof2dot.few = False
# Two programs are measured one after the other: what else runs changes their shares.
for _test in [value for name, value in list(globals().items()) if name.startswith("test_")]:
    _test.alone = "one a CPU"
