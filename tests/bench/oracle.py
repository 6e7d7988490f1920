# SPDX-License-Identifier: BSD-2-Clause
"""Programs that know the truth, under pyprofd and its peers in turn: the error of shares,
impossible stacks, missing samples, and how much slower the program is.

workloads/oracle.py measures by its own clocks.  Each profiler gets the whole work of each program
once, at the same rate, with a run without any before and after.  A stack counts by its functions
o_*, from the root: the last two are the key under which the program measured; which may call which
is CASES' edges.  Nothing here is asserted."""
import collections
import glob
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
import harness  # noqa: E402
import measure  # noqa: E402
import peers as peers_module  # noqa: E402

HZ = 499
SETTLE_S = 1.0
SCRIPT_TRIES = 4  # perf 6.1 crashes now and then

# roots: functions at which a stack may begin.  edges: caller>callee.  levels: how many of RECURSIVE
# lie above a function.
Case = collections.namedtuple("Case", "rounds clock roots edges levels")


def edges(*chains):
    return {(a, b) for chain in chains for a, b in zip(chain.split(">"), chain.split(">")[1:])}


CASES = {
    "callers": Case(850, "cpu", {"o_callers"},
                    edges("o_callers>o_first>o_work", "o_callers>o_second>o_work"), {}),
    "ccalls": Case(
        240, "cpu", {"o_ccalls"},
        edges("o_ccalls>o_python>o_work", "o_ccalls>o_sort", "o_ccalls>o_crc", "o_ccalls>o_copy"),
        {}),
    "waits": Case(170, "wall", {"o_waits"},
                  edges("o_waits>o_short>o_wait", "o_waits>o_long>o_wait", "o_waits>o_busy>o_work"),
                  {}),
    "threads": Case(
        420, "cpu", {"o_threads", "o_thread"},
        edges("o_thread>o_one>o_work", "o_thread>o_two>o_work", "o_thread>o_three>o_work",
              "o_thread>o_four>o_work"), {}),
    "short": Case(18, "cpu", {"o_child"},
                  edges("o_child>o_child_a>o_work", "o_child>o_child_b>o_work"), {}),
    "deep": Case(
        320, "cpu", {"o_deep"},
        edges("o_deep>o_even>o_odd>o_even", "o_deep>o_same>o_same>o_flat>o_work",
              "o_even>o_low>o_work", "o_odd>o_low>o_work", "o_even>o_high>o_work",
              "o_odd>o_high>o_work"), {"o_low": 40, "o_high": 400, "o_flat": 25}),
}
RECURSIVE = {"o_even", "o_odd", "o_same"}

# frames: names from the root.  value: the profiler's own measure (its samples, or time).  count:
# samples.
Stack = collections.namedtuple("Stack", "frames value count")


# ---------------------------------------------------------------- arithmetic

def markers(frames):
    return [name for name in frames if re.fullmatch(r"o_[a-z_]+", name)]


def verdict(case, path):
    """"whole", "cut" (its root is missing: no false caller) or "impossible"."""
    if any(pair not in case.edges for pair in zip(path, path[1:])):
        return "impossible"
    if path[0] not in case.roots:
        return "cut"
    for at, name in enumerate(path):
        levels = case.levels.get(name)
        if levels is not None and sum(n in RECURSIVE for n in path[:at]) != levels:
            return "impossible"
    return "whole"


def judge(case, truth_ns, stacks, hz=HZ):
    """truth_ns: by key.  Shares are of what has a key, is cut or impossible: time that a profiler
    puts elsewhere is missing from its keys."""
    found = dict.fromkeys(truth_ns, 0.0)
    total = missing = 0.0
    count = collections.Counter()
    for stack in stacks:
        path = markers(stack.frames)
        if not path:
            continue
        kind = verdict(case, path)
        key = ">".join(path[-2:])
        if kind == "whole" and key not in found:
            continue  # between two measured calls
        count[kind] += stack.count
        total += stack.value
        if kind == "whole" or (kind == "cut" and key in found):
            found[key] += stack.value
        else:
            missing += stack.value
    whole_ns = sum(truth_ns.values())
    due = whole_ns / 1e9 * hz
    taken = sum(count.values())
    errors = {
        key: (found[key] / total if total else 0.0) - ns / whole_ns for key, ns in truth_ns.items()
    }
    worst = max(errors, key=lambda key: abs(errors[key]))
    share = truth_ns[worst] / whole_ns
    return {
        "samples": taken, "due": due, "taken": taken / due if due else math.nan,
        "cut": count["cut"], "impossible": count["impossible"], "worst": worst,
        "error": errors[worst],
        "sigma": math.sqrt(share * (1 - share) / taken) if taken else math.nan, "shares": {
            key: found[key] / total if total else 0.0 for key in found
        }, "missing": missing, "truth": {key: ns / whole_ns for key, ns in truth_ns.items()}
    }


def slowdowns(runs):
    """[(name or None, seconds)] in the order of the runs: each over the mean of the runs without a
    profiler beside it."""
    result = {}
    for at, (name, seconds) in enumerate(runs):
        if name is None:
            continue
        before = [s for n, s in reversed(runs[:at]) if n is None][:1]
        after = [s for n, s in runs[at + 1:] if n is None][:1]
        beside = before + after
        if beside:
            result[name] = seconds / (sum(beside) / len(beside))
    return result


# ---------------------------------------------------------------- what profilers write

def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def parse_py_spy(text):
    """frame (file:line);... count"""
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if count.isdigit():
            yield Stack([f.partition(" ")[0] for f in stack.split(";")], int(count), int(count))


def parse_austin(text):
    """P1;T0:1;file:function:line;... us: a line a sample"""
    for line in text.splitlines():
        stack, _, us = line.rpartition(" ")
        if not line.startswith("#") and us.isdigit():
            names = [f.rsplit(":", 2)[1] for f in stack.split(";")[2:] if f.count(":") >= 2]
            yield Stack(names, int(us), 1)


def parse_sampling(text):
    """tid:1;file:function:line;... count"""
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if count.isdigit():
            names = [f.rsplit(":", 2)[1] for f in stack.split(";") if f.count(":") >= 2]
            yield Stack(names, int(count), int(count))


def parse_perf(text):
    """perf script: a blank line ends a sample, frames are leaf first; py::function:file of Python's
    own map."""
    names = []
    for line in text.splitlines() + [""]:
        frame = re.match(r"\s+[0-9a-f]+ py::(.+?):.* \(", line)
        if frame:
            names.append(frame.group(1))
        elif not line.strip() and names:
            yield Stack(names[::-1], 1, 1)
            names = []


def parse_pyprofd(directory, clock):
    """Kind cpu: samples.  Kind wall: ns."""
    for base, _, files in os.walk(directory):
        for name in files:
            if not name.endswith("-%s.pb.gz" % clock):
                continue
            for sample in harness.load(os.path.join(base, name)).samples:
                frames = [f.name or "" for f in reversed(sample.frames) if f.kind == "python"]
                count = sample.values[0] if clock == "cpu" else sample.values[0] * HZ / 1e9
                yield Stack(frames, count, count)


# ---------------------------------------------------------------- profilers

class Profiler:
    """command() profiles the target until SIGINT; stacks() reads what it wrote."""
    name = needs = ""
    is_new_python = False  # it runs on Debian's CPython 3.15 only
    options = ()        # of the interpreter

    def __init__(self, peers):
        self.peers = peers

    def why_not(self, case):
        del case
        return self.peers.why.get(self.needs) if self.needs else None

    def out(self, target):
        return target.path("profile")

    def environment(self):
        return None

    def begun(self, process, target):
        del process, target
        time.sleep(SETTLE_S)

    def before_the_end(self, target):
        pass


class Pyprofd(Profiler):
    name = "pyprofd"

    def command(self, case, target):
        del case
        return harness.arguments(self.out(target) + "/", target.pid, HZ, None, ["--live", "no"])

    def begun(self, process, target):
        harness.sampling(process)
        time.sleep(SETTLE_S)

    def stacks(self, case, target):
        return parse_pyprofd(self.out(target), case.clock)


class PyprofdNew(Pyprofd):
    name = "pyprofd, 3.15"
    is_new_python = True


class PySpy(Profiler):
    name = needs = "py-spy"

    def command(self, case, target):
        words = [
            self.peers.path["py-spy"], "record", "-p",
            str(target.pid), "-r",
            str(HZ), "-f", "raw", "-d", "100000", "-o",
            self.out(target)
        ]
        return words + (["--idle"] if case.clock == "wall" else []) + (
            ["-s"] if case is CASES["short"] else [])

    def stacks(self, case, target):
        del case
        return parse_py_spy(read_text(self.out(target)))


class Austin(Profiler):
    name = needs = "austin"

    def why_not(self, case):
        return super().why_not(case) or self.peers.why.get("mojo2austin")

    def command(self, case, target):
        words = [
            self.peers.path["austin"], "-i",
            "%dus" % (1000000 // HZ), "-p",
            str(target.pid), "-o",
            self.out(target)
        ]
        return words + (["-c"] if case.clock == "cpu" else []) + (
            ["-C"] if case is CASES["short"] else [])

    def stacks(self, case, target):
        del case
        text = target.path("profile.txt")
        subprocess.run([self.peers.path["mojo2austin"], self.out(target), text], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return parse_austin(read_text(text))


class Sampling(Profiler):
    """CPython 3.15's own, of the same tree as the target: both in the target's mount namespace."""
    name = "profiling.sampling"
    is_new_python = True

    def command(self, case, target):
        words = ["nsenter", "-t", str(target.pid), "-m", "-r"] + target.python.command[2:] + [
            "-m", "profiling.sampling", "attach", "-r",
            str(HZ), "-a", "--mode", case.clock, "--collapsed", "-o", target.inside + "/profile"
        ]
        return words + (["--subprocesses"] if case is CASES["short"] else []) + [str(target.pid)]

    def environment(self):
        return dict(os.environ, LC_ALL="C", LANG="C")

    def stacks(self, case, target):
        del case
        for path in glob.glob(glob.escape(self.out(target)) + "*"):
            yield from parse_sampling(read_text(path))


class Perf(Profiler):
    """By frame pointers, which Debian's 3.15 is built with; Python's names by -X perf."""
    name = needs = "perf"
    is_new_python = True
    options = ("-X", "perf")

    def why_not(self, case):
        return super().why_not(case) or (
            "samples CPU time only" if case.clock == "wall" else None)

    def command(self, case, target):
        del case
        return [
            self.peers.path["perf"], "record", "-q", "-e", "cpu-clock", "-F",
            str(HZ), "-g", "-p",
            str(target.pid), "--no-buildid", "--no-buildid-cache", "-o",
            self.out(target)
        ]

    def stacks(self, case, target):
        del case
        maps = [
            m for m in glob.glob(target.python.root + "/tmp/perf-*.map")
            if os.path.getmtime(m) >= target.began
        ]
        links = ["/tmp/" + os.path.basename(m) for m in maps]
        for made, link in zip(maps, links):
            os.symlink(made, link)
        try:
            return parse_perf(self.script(target))
        finally:
            for path in links + maps:
                os.unlink(path)

    def script(self, target):
        for _ in range(SCRIPT_TRIES):
            done = subprocess.run([
                self.peers.path["perf"], "script", "-i",
                self.out(target), "--no-inline", "-F", "ip,sym,dso"
            ], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            if done.returncode == 0:
                return done.stdout.decode("utf-8", "replace")
        raise AssertionError(
            "perf script ended with %d, %d times" % (done.returncode, SCRIPT_TRIES))


PROFILERS = (Pyprofd, PySpy, Austin, PyprofdNew, Sampling, Perf)


# ---------------------------------------------------------------- runs

def new_python():
    """Debian's 3.15 with /proc in its tree, which profiling.sampling reads; None: it is not
    there."""
    for one in harness.interpreters():
        if one.version == (3, 15) and one.root:
            return one
    return None


def wrap_of(python):
    if not python.root:
        return []
    return ["unshare", "-m", "sh", "-c", 'mount --bind /proc "$0/proc" && exec "$@"', python.root]


def start_target(case_name, rounds, python, profiler):
    options = profiler.options if profiler else ()
    env = {"LC_ALL": "C", "LANG": "C"} if python.root else {}
    if options:
        env["PYTHONPERFSUPPORT"] = "1"  # of children, too
    began = time.time()
    target = harness.Target("oracle.py", case_name, rounds, python=python, options=options, env=env,
                            wrap=wrap_of(python))
    target.began = began - 1
    return target


def attach(profiler, case, target):
    log = harness.tempfile.TemporaryFile()
    process = subprocess.Popen(profiler.command(case, target), stdin=subprocess.DEVNULL, stdout=log,
                               stderr=log, env=profiler.environment())
    process.e2e_log, process.e2e_out = log, profiler.out(target)
    profiler.begun(process, target)
    return process


def run_once(case_name, python, profiler, rounds):
    """(seconds of the work by the wall clock, by the clocks that measured; judgement or None)"""
    case = CASES[case_name]
    with start_target(case_name, rounds, python, profiler) as target:
        process = attach(profiler, case, target) if profiler else None
        try:
            if process and process.poll() is not None:
                raise AssertionError("ended at once: " + harness.said(process).strip()[-200:])
            open(target.path("go"), "w").close()
            target.wait("truth.json", 120)
            truth = target.read("truth.json")
            time.sleep(0.1)
        finally:
            if process:
                harness.finish(process, 60, signal.SIGINT)
        seconds = truth["wall_ns"] / 1e9, sum(truth["ns"].values()) / 1e9
        if not profiler:
            return seconds, None
        return seconds, judge(case, truth["ns"], list(profiler.stacks(case, target)))


def text_of(one):
    if "why" in one:
        return one["why"]
    if not one["samples"]:
        return "no sample in the program's functions, program x %.3f" % one["slowdown"]
    return (
        "error %+.1f points (%s; counting error %.1f), impossible %d, cut %d, taken %.0f %% of "
        "%.0f, program x %.3f, by "
        "its own clocks x %.3f" %
        (100 * one["error"], one["worst"], 100 * one["sigma"], one["impossible"], one["cut"],
         100 * one["taken"], one["due"], one["slowdown"], one["slowdown_own"]))


def run_case(case_name, profilers, pythons, rounds, say):
    """All that run on one interpreter after each other, with the bare runs between them."""
    result = {}
    for is_new in (False, True):
        python, runs = pythons[is_new], []
        chosen = [p for p in profilers if p.is_new_python == is_new]
        for profiler in chosen:
            why = profiler.why_not(CASES[case_name])
            if not python:
                why = "no CPython of Debian's 3.15 (make interpreters)"
            if why:
                result[profiler.name] = {"why": why}
                continue
            if not runs:
                runs.append((None, run_once(case_name, python, None, rounds)[0]))
            try:
                seconds, result[profiler.name] = run_once(case_name, python, profiler, rounds)
                runs += [(profiler.name, seconds),
                         (None, run_once(case_name, python, None, rounds)[0])]
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                result[profiler.name] = {"why": str(error)[-300:]}
        for at, kind in enumerate(("slowdown", "slowdown_own")):
            for name, ratio in slowdowns([(n, seconds[at]) for n, seconds in runs]).items():
                result[name][kind] = ratio
    for profiler in profilers:
        say("oracle   %-8s %-19s %s" % (case_name, profiler.name, text_of(result[profiler.name])))
    return result


def need_mojo2austin(peers):
    """Austin's own reader of its format."""
    path = peers.venv + "/bin/mojo2austin"
    if "austin" in peers.path and not os.path.exists(path):
        peers_module.said([peers_module.PIP, peers.venv + "/bin/python", "austin-python"])
    if os.path.exists(path):
        peers.path["mojo2austin"] = path
    else:
        peers.why["mojo2austin"] = "no mojo2austin (PyPI: austin-python)"


def section(peers, quick, say, cases=""):
    """cases: names by commas; none: all."""
    need_mojo2austin(peers)
    profilers = [one(peers) for one in PROFILERS]
    old = harness.interpreter((3, 11), (3, 13), prefer=(3, 13))
    new = new_python()
    pythons = {False: old, True: new}
    result = {"hz": HZ, "pythons": [p.label for p in pythons.values() if p], "cases": {}}
    for name in cases.split(",") if cases else CASES:
        rounds = max(2, CASES[name].rounds // (5 if quick else 1))
        result["cases"][name] = run_case(name, profilers, pythons, rounds, say)
        harness.clean_up()
    return result


# ---------------------------------------------------------------- the table of docs/accuracy.md

def cell(one):
    if "why" in one:
        return "–"
    if not one["samples"]:
        return "no sample"
    faults = [("%d impossible", one["impossible"]), ("%d cut", one["cut"])]
    words = [
        "%+.1f (%.1f)" % (100 * one["error"], 100 * one["sigma"]),
        "%.0f %%" % (100 * one["taken"])
    ]
    return "; ".join(words + [text % count for text, count in faults if count])


def rows(cases):
    """cases: as section() returns.  A line a profiler, a column a program, at the end the median
    slow-downs."""
    yield "| profiler | " + " | ".join(cases) + " | slower by the wall clock | by its own clocks |"
    yield "|---" * (len(cases) + 3) + "|"
    for profiler in PROFILERS:
        found = [case[profiler.name] for case in cases.values()]
        ratios = [[one[kind] for one in found if kind in one]
                  for kind in ("slowdown", "slowdown_own")]
        slower = [
            "x %.3f (%.3f to %.3f)" % (measure.median(r), min(r), max(r)) if r else "–"
            for r in ratios
        ]
        yield "| %s | %s |" % (profiler.name, " | ".join([cell(one) for one in found] + slower))
    for profiler in PROFILERS:
        for name, case in cases.items():
            if "why" in case[profiler.name]:
                yield "\n%s, %s: %s" % (profiler.name, name, case[profiler.name]["why"])


def main(paths):
    """oracle.py FILE...   The table of what `run.py --only oracle -o FILE` wrote, of one run or of
    a run a program."""
    cases = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            cases.update(json.load(file)["oracle"]["cases"])
    for row in rows({name: cases[name] for name in CASES if name in cases}):
        print(row)


if __name__ == "__main__":
    main(sys.argv[1:])
