#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cases.py [--few] [ID-REGEX,...]   Runs the acceptance cases of modes cpu, offcpu, gil, usdt and
memory in $CASES (default: ../shared/devcases beside the checkout), each under all ways that
case_ways.py has for its mode.  --few, for `make check`: some of them, for half as long.

One test is one case under one way.  It fails when a check fails, when pyprofd ends with an error,
and when the runner ends without a result.  One whose checks failed is run once more and the second
result counts, if there are no more such than a 25th of all (retries.py); one that ended with an
error is not (a program's ways are one run).

Time that a hypervisor steals is in no clock of the program, but a sample that was due meanwhile is
its own.  A check of CPU time that got more than it may is passed when the excess is at most the
program's part of what /proc/stat says was stolen meanwhile; the figures are printed.  $CASES_WORK:
work directory (default: build/cases)."""
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import case_ways  # noqa: E402
import machine  # noqa: E402
import retries  # noqa: E402

# Not in `make check` (--few), but in check-long: Python on one thread, as in d07 and in
# test_beside.py, and 3.7, as 2.7 in d15.
LEFT = re.compile("(d01_json_regex|d03_fix_headers|d04_indirect_inc|d08_recursion|d16_py37)$")
LIMIT_S = 180

# status: pass, skip, fail (checks failed) or error (pyprofd or the runner ended badly, or there is
# no profile)
Verdict = collections.namedtuple("Verdict", "status lines")


def excess_is_stolen(result, check, mode, reading):
    """A line that says so, or None.  A check of an amount says `got` and `V+-T%`, both per
    second."""
    _, said, got, wanted = check
    match = re.match(r"([\d.e+-]+)\+-([\d.]+)%$", wanted)
    if mode != "cpu" or not said.startswith("amount") or not match or not re.match(
            r"[\d.e+-]+$", got):
        return None
    excess = float(got) - float(match.group(1)) * (1 + float(match.group(2)) / 100)
    truth = result["truth"]
    part = machine.stolen_part_ns(reading, truth.get("cpu", 0)) / (truth["duration"] / 1e9)
    if not 0 < excess <= part:
        return None
    return ("%s: got %s, want %s: %.3f s a second too much, of which %.3f s were stolen "
            "(/proc/stat)" % (said, got, wanted, excess / 1e9, part / 1e9))


def judge(result, mode, reading):
    """The Verdict on what the runner wrote for one way; None: it wrote nothing."""
    if not isinstance(result, dict):
        return Verdict("error", ["the runner said nothing of it"])
    status, lines = result.get("status"), [result["why"]] if "why" in result else []
    if result.get("profiler_rc", 0) != 0:
        return Verdict("error", lines + ["pyprofd ended with %s" % result["profiler_rc"]])
    if status == "skip":
        return Verdict("skip", lines)
    if status not in ("pass", "fail") or not any(check[0] in ("ok", "FAIL")
                                                 for check in result["checks"]):
        return Verdict("error", lines + ["the runner's status is %s" % status])
    passed = True
    for check in result["checks"]:
        if check[0] == "ok" and check[2] == "0" and check[3].startswith("0+-"):
            return Verdict("error", lines + ["%s: nothing was held against nothing" % check[1]])
        if check[0] == "FAIL":
            noise = excess_is_stolen(result, check, mode, reading)
            passed = passed and noise is not None
            lines.append(noise or "%s: got %s, want %s" % tuple(check[1:]))
    if not lines:
        return Verdict("pass", lines)
    lines.append(
        "meanwhile the machine was busy for %.1f s, idle for %.1f s, and %.2f s were stolen"
        % tuple(ns / 1e9 for ns in reading))
    return Verdict("pass" if passed else "fail", lines)


class Cases:
    def __init__(self, directory, work, few):
        self.directory, self.work, self.few, self.modes = directory, work, few, {}
        self.long = set()  # half of the time has half of the processes, and too few waits for a GIL
        for path in sorted(glob.glob(directory + "/*/case.json")):
            with open(path, encoding="utf-8") as file:
                case = json.load(file)
            if case.get("mode", "cpu") in case_ways.MODES:
                self.modes[case["id"]] = case.get("mode", "cpu")
                if case.get("mode") == "gil" or any(
                        expected["type"] == "processes" for expected in case.get("expect", ())):
                    self.long.add(case["id"])

    def set_up(self, names):
        """A marker saves the second time; it is tied to the cases as they stand.  What cannot be
        set up fails its case."""
        state = zlib.crc32(b"".join(
            open(path, "rb").read() for path in sorted(glob.glob(self.directory + "/*/case.json"))))
        marker = os.path.join(self.work,
                              ".setup-%08x" % zlib.crc32(",".join(names).encode(), state))
        if os.path.exists(marker):
            return
        done = subprocess.run([
            sys.executable,
            os.path.join(self.directory, "run_cases.py"), self.directory, "--setup", "--work",
            self.work, "--only", ",".join("^%s$" % name for name in names)
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        if done.returncode == 0:
            open(marker, "w", encoding="ascii").close()
        else:
            print("# set-up ended with %d:\n%s" % (done.returncode, "\n".join(
                line for line in done.stdout.splitlines()[-20:] if not line.endswith(" ok"))))

    def run(self, name):
        """{way: Verdict} of one run of the program."""
        out = os.path.join(self.work, "results", name)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        before = machine.read()
        with open(os.path.join(out, "log"), "wb") as log:
            try:
                rc = subprocess.run([
                    sys.executable,
                    os.path.join(HERE, "case_ways.py"), self.directory, name, self.work, out,
                    *(self.few if name not in self.long else ())
                ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=LIMIT_S,
                                    check=False).returncode
            except subprocess.TimeoutExpired:
                rc = "no result within %d s" % LIMIT_S
        reading = machine.since(before)
        results = {}
        for way in case_ways.ways_of(self.modes[name]):
            try:
                with open(os.path.join(out, way + ".json"), encoding="utf-8") as file:
                    results[way] = next(r for r in json.load(file) if r["id"] == name)
            except (OSError, ValueError, StopIteration):
                results[way] = None
        return self.verdicts(name, rc, results, reading)

    def verdicts(self, name, rc, results, reading):
        """A runner that says 0 has passed all, one that says 1 has failed some; any other end is an
        error."""
        expected = 0 if all(r and r["status"] in ("pass", "skip") for r in results.values()) else 1
        found = {way: judge(result, self.modes[name], reading) for way, result in results.items()}
        if rc != expected:
            with open(os.path.join(self.work, "results", name, "log"), encoding="utf-8",
                      errors="replace") as file:
                end = file.read()[-600:]
            return {way: verdict if verdict.status == "error" and results[way] else
                    Verdict("error", verdict.lines + ["the runner ended with %s: %s" % (rc, end)])
                    for way, verdict in found.items()}
        return found


def left_of(names):
    """What --few leaves to check-long."""
    return [name for name in names if LEFT.match(name)]


def run_all(cases, names):
    """Yields (name, verdicts of its ways).  Two programs at a time, as most have a thread that
    computes, and what is judged are their own clocks; those whose threads wait for each other (gil)
    have the machine to themselves."""
    alone = [name for name in names if cases.modes[name] == "gil"]
    for group, at_a_time in ([name for name in names if name not in alone], min(
            2, os.cpu_count())), (alone, 1):
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
            yield from zip(group, pool.map(cases.run, group))


def show(name, way, verdict):
    print("%s %s %s" % ({"pass": "ok", "skip": "skip"}.get(verdict.status, "not ok"), name, way)
          + (": " + "; ".join(verdict.lines) if verdict.lines and verdict.status == "skip" else ""))
    if verdict.status != "skip":
        for line in verdict.lines:
            print("    " + line.replace("\n", "\n    "))
    sys.stdout.flush()


def main():
    directory = os.environ.get("CASES") or os.path.join(TOP, "../shared/devcases")
    build = os.path.join(TOP, os.environ.get("BUILD") or "build")
    if not os.path.isfile(os.path.join(directory, "run_cases.py")):
        print("skip cases: no %s (the acceptance cases are not part of this repository)"
              % os.path.relpath(directory, TOP))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    for program in "pyprofd", "pyprof":
        os.environ[program.upper()] = os.path.abspath(
            os.environ.get(program.upper()) or os.path.join(build, program))
    work = os.path.abspath(os.environ.get("CASES_WORK") or os.path.join(build, "cases"))
    os.makedirs(work, exist_ok=True)
    cases = Cases(directory, work, [word for word in sys.argv[1:] if word == "--few"])
    words = [word for word in sys.argv[1:] if word != "--few"]
    wanted = (words[0] if words else ".").split(",")
    names = [name for name in cases.modes if any(re.search(regex, name) for regex in wanted)]
    if not names:
        print("no case matches %s" % ",".join(wanted), file=sys.stderr)
        return 2
    left = left_of(names) if cases.few else []
    if left:
        print("# left to check-long: %d (%s, under each way)"
              % (sum(len(case_ways.ways_of(cases.modes[name])) for name in left),
                 ", ".join(left)))
        names = [name for name in names if name not in left]
    cases.set_up(names)
    verdicts = {}
    for name, found in run_all(cases, names):
        for way, verdict in found.items():
            verdicts[name, way] = verdict
            show(name, way, verdict)
    # One run of a program is what fails by chance, under all of its ways.
    again = retries.chosen(
        sorted({name for (name, _), v in verdicts.items() if v.status == "fail"}), len(names))
    for name in again:
        for way, verdict in cases.run(name).items():
            # The other ways of the same run are judged again: they must be well twice.  A skip does
            # not undo a failure.
            if verdict.status != "skip":
                verdicts[name, way] = verdict
            show(name, way, verdict)
    count = collections.Counter(
        {"error": "fail"}.get(v.status, v.status) for v in verdicts.values())
    for (name, way), verdict in verdicts.items():
        if verdict.status in ("fail", "error"):
            print("# failed: %s %s" % (name, way))
    print("%d passed, %d failed, %d skipped%s"
          % (count["pass"], count["fail"], count["skip"], retries.said(again)))
    return 1 if count["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
