# SPDX-License-Identifier: BSD-2-Clause
"""pyprof beside cProfile, gprof2dot and line_profiler on programs of a course: one run of a
program, looked at by both, since each of these tools changes the shares of what it looks at
(cProfile makes calls dear, line_profiler lines); and, where a program has clocks of its own, a run
without any tool beside these.

What may differ, and no more:
- chance: four standard errors (a hundred rows are compared) of the share by pyprofd's samples, and
  1 point for the other's clock;
- line_profiler goes by the wall's clock: of the time for which the program had no CPU by its own
  clocks (profiled.py), half may have come to one line (nothing for cProfile, which is given the
  thread's CPU clock).  That pyprofd has a sample for each period of the program's CPU time is
  checked beside it, so that what it lost is no excuse;
- of what cProfile spends on a call itself, a part is the caller's time for cProfile and the called
  function's for pyprofd: it is spent in that frame.  On a line, and at a function's return, it is
  nobody's for line_profiler.  profiled.py measures it at the end of each run.
"""
import collections
import glob
import json
import math
import os
import pstats
import re
import subprocess

import harness
from test_pyprof import python_with, run

SECONDS, HZ = 2, 999
CLOCK, WAITS_AT_MOST = 1.0, 10.0  # percentage points
PROFILED = os.path.join(harness.HERE, "profiled.py")
CASES = os.path.abspath(os.environ.get("CASES") or os.path.join(harness.TOP, "../shared/devcases"))

# root: what all shares are of.  lines: functions whose lines line_profiler times.
Program = collections.namedtuple("Program", "script root lines pool")
PROGRAMS = {
    "d01": Program("d01_json_regex/main.py", "main", "main", False),
    "d03": Program("d03_fix_headers/fix_headers.py", "convert", "convert,fix_header", False),
    "d04": Program("d04_indirect_inc/main.py", "main", "main,indirect_inc", False),
    "d07": Program("d07_lines/main.py", "main", "slow_function", False),
    "d09": Program("d09_pool/main.py", "mapstar", "count_primes", True),
    "scatter_sum": Program("scatter_sum.py", "main", "main,by_sort", False),
    "pair_records": Program("pair_records.py", "main", "main,parse", False),
    "straggler": Program("straggler.py", "mapstar", "item", True),
}
Span = collections.namedtuple("Span", "low high")  # of what the tool says, by its own cost
REPORT = re.compile(
    r"^ *([\d.]+) % +\S+ +([\d.]+) % +\S+ +\S+ \S+ +\S+ \S+ +\d+[~ ] (\S+) +(\S+):(\d+)$", re.M)
OUR_BOX = re.compile(r'(n\d+) \[label="([^"\\]+)\\n([^"\\]+):(\d+)\\n([\d.]+)%')
OUR_EDGE = re.compile(r'(n\d+) -> (n\d+) \[label="([\d.]+)%')
THEIR_BOX = re.compile(r'^\t(\d+) \[.*label="(\w+):(\d+):[^"]*?\\n([\d.]+)%', re.M)
THEIR_EDGE = re.compile(r'^\t(\d+) -> (\d+) \[.*label="([\d.]+)%', re.M)


# ---- runs ----

def launch(name, tool=None):
    """(profile, what the tool wrote, its clocks and what it spends on one call or line, what the
    program measured)"""
    program = PROGRAMS[name]
    python, directory, arguments = python_with("line_profiler, numpy"), harness.temporary(), []
    version = subprocess.check_output(
        [python, "-c", "import sys; print('%d.%02d' % sys.version_info[:2])"]).decode().strip()
    harness.need(
        version >= "3.12",
        "no Python 3.12 or later beside pyprof's tools, only %s: cProfile before that slows each "
        "bytecode, and its shares are no measure (Debian 13 has 3.13; pyenv install 3.12)"
        % version.replace(".0", "."))
    script = os.path.join(CASES if name.startswith("d0") else harness.TARGETS, program.script)
    harness.need(os.path.exists(script),
                 "no %s (the acceptance cases are not part of this repository)" % script)
    if name == "d03":
        arguments = [os.path.join(directory, "in.fastq"), os.path.join(directory, "out.fastq")]
        subprocess.check_call(
            [python, os.path.join(os.path.dirname(script), "gen.py"), arguments[0]])
    out = os.path.join(directory, "tool")
    # Ahead of the machine's other work, so that it waits little for a CPU.
    command = ["nice", "-n", "-15", python
               ] + ([PROFILED, tool, out] if tool else []) + [script] + arguments
    # d04 first shuffles numbers, which takes two seconds where each line costs.
    seconds = SECONDS * 2 if (name, tool) == ("d04", "lines:" + program.lines) else SECONDS
    done = harness.profile(
        hz=HZ, duration=None, options=["-q"], command=command, limit_s=90, env={
            "CASE_TMP": directory, "CASE_SECONDS": str(seconds), "PYTHONPATH": os.path.join(
                CASES, "_kit"), "PYTHONDONTWRITEBYTECODE": "1"
        })
    truth = [
        json.loads(line[len("TRUTH "):]) for line in done.err.splitlines()
        if line.startswith("TRUTH ")
    ]
    assert truth, done.err[-2000:]
    if not tool:
        return done.out, [], {}, truth[-1]
    with open(out + "-clocks") as file:
        clocks = json.load(file)
    check_samples(done.out, clocks)
    return done.out, sorted(glob.glob(out + ".*")), clocks, truth[-1]


def check_samples(profile, clocks):
    """Of the program's CPU time, by its own clock; what it takes to begin and to end is beside
    that."""
    samples = int(re.search(r" in (\d+) samples", run("report", profile)).group(1))
    assert samples >= 0.95 * HZ * clocks["cpu_s"] - 4 * math.sqrt(HZ * clocks["cpu_s"]), (
        samples, clocks)


def waited(clocks):
    """What waits for a CPU, or for anything else, may do to a share."""
    return min(50 * max(1 - clocks["cpu_s"] / clocks["wall_s"], 0), WAITS_AT_MOST)


def module_of(path):
    return os.path.splitext(os.path.basename(path))[0]


# ---- what the tools say ----

class Calls:
    """cProfile's functions below the root, as pyprof --python has them: the time of C functions is
    their callers'.  Keys are "module:line of the def"; shares are of the root's total."""

    def __init__(self, files, root, cost_s):
        self.stats, self.cost = pstats.Stats(*files).stats, cost_s
        self.names, self.self, self.total = {}, {}, {}
        self.root = max((key for key in self.stats if key[2] == root),
                        key=lambda key: self.stats[key][3])
        self.callees = collections.defaultdict(dict)
        for key, (_, _, _, _, callers) in self.stats.items():
            for caller, edge in callers.items():
                self.callees[caller][key] = edge
        whole, reached, waiting = self.stats[self.root][3], set(), [self.root]
        self.wall_s = whole
        while waiting:
            key = waiting.pop()
            if key in reached:
                continue
            reached.add(key)
            waiting += self.callees[key]
        for key in reached:
            # An import on the way: exec() also calls what the root lies in.
            if key[0] != "~" and self.stats[key][3] <= whole:
                self.add(key, whole)

    def add(self, key, whole):
        _, calls, own, total, _ = self.stats[key]
        made = 0
        for callee, edge in self.callees[key].items():
            if callee[0] == "~":
                own += edge[2]
                made += sum(inner[1] for at, inner in self.callees[callee].items() if at[0] != "~")
            else:
                made += edge[1]
        name = "%s:%d" % (module_of(key[0]), key[1])
        self.names[name] = key[2]
        got, given = calls * self.cost / whole * 100, made * self.cost / whole * 100
        own, total = own / whole * 100, total / whole * 100
        self.self[name] = Span(max(own - given, 0), own + got)
        self.total[name] = Span(total, total + got)

    def edge_cost(self, pair):
        """Of its calls."""
        calls = sum(edge[1] for one, edges in self.callees.items() for other, edge in edges.items()
                    if ("%s:%d" % (module_of(one[0]), one[1]),
                        "%s:%d" % (module_of(other[0]), other[1])) == pair)
        return calls * self.cost / self.wall_s * 100


def their_lines(files, cost_s):
    """(function, line) -> its share of the function."""
    found = collections.defaultdict(lambda: [0, 0.0])
    for path in files:
        with open(path) as file:
            for function, line, events, seconds in json.load(file):
                found[function, line][0] += events
                found[function, line][1] += seconds
    whole = collections.defaultdict(lambda: [0.0, 0.0])
    for (function, _), (events, seconds) in found.items():
        whole[function][0] += seconds
        whole[function][1] += events * cost_s
    return {
        key: Span(100 * seconds / sum(whole[key[0]]),
                  100 * (seconds + events * cost_s) / whole[key[0]][0])
        for key, (events, seconds) in found.items()
    }


# ---- side by side ----

def beside(what, other, ours, theirs, samples, slack=0.0, names=None):
    """Prints both, and asserts on the first five of either: as big as the other says, and in its
    order."""
    def noise(share):
        share = min(max(share / 100, 0.005), 1)
        return CLOCK + slack + 400 * math.sqrt(share * (1 - share) / samples)

    def fits(key):
        span = theirs.get(key, Span(0, 0))
        return span.low - noise(span.low) <= ours.get(key, 0.0) <= span.high + noise(span.high)

    def label(key):
        return " > ".join(map(label, key)) if isinstance(key, tuple) else (names or {}).get(
            key, str(key))

    first = sorted((key for key in theirs if theirs[key].low > 0),
                   key=lambda key: -theirs[key].low)[:5]
    also = [key for key in sorted(ours, key=lambda key: -ours[key])[:5] if key not in first]
    print("%-42s %7s %13s  with its cost" % (what, "pyprof", other))
    for key in first + also:
        span = theirs.get(key, Span(0, 0))
        print("  %-40.40s %7.1f %13.1f  %6.1f%s" % (label(key), ours.get(
            key, 0.0), span.low, span.high, "" if fits(key) else "   differs"))
    wrong = [key for key in first + also if not fits(key)]
    assert not wrong, (what, wrong)
    for a in first:
        for b in first:
            if theirs[a].low - theirs[b].high > noise(theirs[a].low) + noise(theirs[b].high):
                assert ours.get(a, 0) > ours.get(b, 0), (what, a, b)


def report(profile, root):
    """(self, total, samples): shares of the root by "module:line"."""
    said = run("report", "--python", "--top", 0, profile)
    rows = {"%s:%s" % (module_of(m.group(4)), m.group(5)): (float(m.group(1)), float(m.group(2)))
            for m in REPORT.finditer(said)}
    assert root in rows, (root, said[:2000])
    whole = rows[root][1]
    samples = int(re.search(r" in (\d+) samples", said).group(1)) * whole / 100
    return ({key: 100 * row[0] / whole for key, row in rows.items()},
            {key: 100 * row[1] / whole for key, row in rows.items()}, samples)


def graph(text, box, edge, root):
    """(boxes, edges) of a dot file as shares of the root; boxes by "module:line"."""
    name, boxes, edges = {}, {}, {}
    for match in box.finditer(text):
        *_, number, share = match.groups()
        key = "%s:%s" % (module_of(match.groups()[-3]), number)
        name[match.group(1)], boxes[key] = key, float(share)
    for match in edge.finditer(text):
        caller, callee = (name.get(match.group(i)) for i in (1, 2))
        if caller and callee:
            edges[caller, callee] = float(match.group(3))
    whole = boxes[root]
    return ({key: 100 * share / whole for key, share in boxes.items()},
            {pair: 100 * share / whole for pair, share in edges.items()})


def test_report_and_calls(name):
    program = PROGRAMS[name]
    profile, files, clocks, _ = launch(name, "cprofile")
    # In 3.12 cProfile sees all threads of a process as one: the pool's own process has several.
    files = [
        path for path in files if any(key[2] == program.root for key in pstats.Stats(path).stats)
    ]
    theirs = Calls(files, program.root, clocks["cost_s"])
    names, reached = theirs.names, set(theirs.names)
    root = "%s:%d" % (module_of(theirs.root[0]), theirs.root[1])
    own, total, samples = report(profile, root)
    noise = samples, 0  # both count CPU time
    # What ran beside the root (imports, the pool's threads) is in pyprof's tables and not below
    # cProfile's root.
    for what, ours, other in ("report, self %", own, theirs.self), (
            "report, total %", total, theirs.total):
        beside(what, "cProfile", {key: ours[key] for key in ours if key in reached}, other, *noise,
               names)
    drawn = subprocess.run([python_with("gprof2dot"), "-m", "gprof2dot", "-f", "pstats", *files],
                           check=True, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL).stdout.decode()
    boxes, edges = graph(drawn, THEIR_BOX, THEIR_EDGE, root)
    our_boxes, our_edges = graph(run("calls", "--python", profile), OUR_BOX, OUR_EDGE,
                                 root)
    beside("calls, boxes %", "gprof2dot",
           {key: our_boxes[key] for key in our_boxes if key in reached}, {
               key: Span(boxes[key], boxes[key] + theirs.total[key].high - theirs.total[key].low)
               for key in boxes if key in reached
           }, *noise, names)
    # A C function between two of Python is a box of gprof2dot's and none of pyprof calls --python.
    both = [pair for pair in edges if set(pair) <= reached]
    beside("calls, edges %", "gprof2dot",
           {pair: our_edges[pair] for pair in our_edges if pair in both},
           {pair: Span(edges[pair], edges[pair] + theirs.edge_cost(pair)) for pair in both}, *noise,
           names)


def test_lines(name):
    program = PROGRAMS[name]
    profile, files, clocks, _ = launch(name, "lines:" + program.lines)
    theirs = their_lines(files, clocks["cost_s"])
    said = int(re.search(r" in (\d+) samples", run("report", profile)).group(1))
    for function in program.lines.split(","):
        text = run("lines", "%s:%s" % (os.path.basename(program.script), function), "--all",
                   profile)
        ours = {
            int(m.group(1)): float(m.group(2)) for m in re.finditer(
                r"^ *(\d+) (?: *[\d.]+ % +\S+| {14,})? +([\d.]+) % +\S+ ", text, re.M)
        }
        whole = sum(ours.values())
        samples = said * whole / 100
        beside("lines of %s, %%" % function, "line_profiler",
               {line: 100 * share / whole for line, share in ours.items()},
               {line: span for (owner, line), span in theirs.items() if owner == function}, samples,
               waited(clocks))


def programs():
    return [(name, name) for name in PROGRAMS if not name.startswith("d0") or os.path.isdir(CASES)]


def test_the_cases_are_at_hand():
    harness.need(
        os.path.isdir(CASES),
        "no %s (the acceptance cases are not part of this repository): d01, d03, d04, d07 and d09 "
        "are not held against cProfile, gprof2dot and line_profiler" % CASES)


def test_own_clocks(name):
    """No tool beside pyprofd: shares as the program's clocks have them."""
    profile, _, _, truth = launch(name)
    processes = sorted(truth.pop("processes", []), reverse=True)
    truth.pop("item", None)
    said = run("report", "--python", "--top", 0, profile)
    found = {m.group(3): float(m.group(2)) for m in REPORT.finditer(said)
             if m.group(3) in truth and module_of(m.group(4)) == name}
    samples = int(re.search(r" in (\d+) samples", said).group(1)) * sum(found.values()) / 100
    whole, spent = sum(found.values()), sum(truth.values())
    beside("report, total %", "own clocks",
           {key: 100 * share / whole for key, share in found.items()},
           {key: Span(100 * ns / spent, 100 * ns / spent) for key, ns in truth.items()}, samples)
    if processes:
        said = run("report", "--by", "process", "--focus", "^item$", profile)
        shares = sorted(
            (float(share) for share in re.findall(r"^ *([\d.]+) %.* pid \d+ ", said, re.M)),
            reverse=True)
        beside("process, nth", "own clocks",
               {nth: 100 * share / sum(shares) for nth, share in enumerate(shares)},
               {nth: Span(*[100 * ns / sum(processes)] * 2) for nth, ns in enumerate(processes)},
               samples)


test_report_and_calls.cases = test_lines.cases = programs
test_own_clocks.cases = lambda: [(name, name) for name in PROGRAMS if not name.startswith("d0")]
# A program with a pool and one without; the others are like one of them, with other shares.
test_report_and_calls.few = lambda every: [
    case for case in every if case[0] in ("scatter_sum", "straggler")
]
test_lines.few = lambda every: [case for case in every if case[0] == "scatter_sum"]
test_own_clocks.few = lambda every: [case for case in every if case[0] == "straggler"]
# Shares of CPU time, timed by the wall's clock.
ALONE = "one a CPU"
