#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""diff_alarms.py PYPROF A [B [--busy]]   How often `pyprof diff` cries wolf, and how often it sees
one.

A and B are directories of windows of --interval 1; in B the function that GROWN names (default:
scan) has 5 points more:

    pyprofd --events=cpu --interval 1 -o A/ -- python3 tests/bench/workloads/grown.py 1210 10
    pyprofd --events=cpu --interval 1 -o B/ -- python3 tests/bench/workloads/grown.py 1210 15

A/A: 200 pairs of 60 windows of A, drawn at random without overlap; an alarm is any function whose
self or total has p < 0.05.  A/B: 20 runs of 60 s a side in windows of 5 s, that is of 5 windows in
a row put into one, 12 in a row of each directory: 20 minutes of each make 20 runs that have nothing
in common.  --busy: of 5 s of CPU time, so that the runs are those of a program that has a CPU of
its own, also where the machine is shared.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

PAIRS, WINDOWS, RUNS, JOINED, SLOTS, HZ = 200, 60, 20, 5, 12, 99
ALARM = [f"--fail-if={column} {sign} 0% p < 0.05" for column in ("self", "total") for sign in "<>"]


def windows(directory):
    return sorted(pathlib.Path(directory).rglob("*-cpu.pb.gz"), key=lambda path: path.name)


def side(directory, paths):
    day = directory / "2026-01-01" / "00"
    day.mkdir(parents=True)
    for path in paths:
        os.symlink(path.resolve(), day / path.name)
    return str(directory)


def diff(pyprof, a, b, rules):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        return subprocess.run([
            pyprof, "diff", "--by", "function",
            side(place / "a", a),
            side(place / "b", b), *rules
        ], capture_output=True, text=True, check=False)


def cpu_seconds(pyprof, path):
    said = subprocess.run([pyprof, "info", path], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"samples/count: (\d+)", said).group(1)) / HZ


def parts(pyprof, paths, busy):
    """Windows in a row that are 5 s together."""
    part, seconds = [], 0
    for path in paths:
        part.append(path)
        seconds += cpu_seconds(pyprof, path) if busy else 1
        if seconds >= JOINED:
            yield part
            part, seconds = [], 0


def join(pyprof, paths, place, busy):
    """Windows of 5 s, named as the store does."""
    place.mkdir()
    joined = []
    for part in parts(pyprof, paths, busy):
        start = int(part[0].name.split("-")[0])
        out = place / f"{start}-{JOINED * 1000}-cpu.pb.gz"
        subprocess.run([pyprof, "export", "-o", out, *part], check=True)
        joined.append(out)
    return joined


def alarms(pyprof, paths):
    count = 0
    for _ in range(PAIRS):
        drawn = random.sample(paths, 2 * WINDOWS)
        run = diff(pyprof, drawn[:WINDOWS], drawn[WINDOWS:], ALARM)
        assert run.returncode in (0, 1), run.stderr
        count += run.returncode
    return count


def found(pyprof, a, b, grown):
    count = 0
    for run in range(RUNS):
        first, second = (paths[(len(paths) - SLOTS) * run // (RUNS - 1):][:SLOTS]
                         for paths in (a, b))
        done = diff(pyprof, first, second, ["--fail-if=total > 0% p < 0.05"])
        assert done.returncode in (0, 1), done.stderr
        count += bool(re.search(rf"^fail-if .*: {grown} ", done.stdout, re.M))
    return count


def main():
    busy = "--busy" in sys.argv
    pyprof, *directories = [argument for argument in sys.argv[1:] if argument != "--busy"]
    first = windows(directories[0])
    random.seed(1)
    print(
        f"A/A: {alarms(pyprof, first)} false alarms of {PAIRS} pairs, "
        f"{len(first)} windows recorded",
        flush=True)
    if len(directories) > 1:
        with tempfile.TemporaryDirectory() as place:
            place = pathlib.Path(place)
            a, b = (join(pyprof, windows(directory), place / name, busy)
                    for directory, name in zip(directories, "ab"))
            print(
                f"A/B: {found(pyprof, a, b, os.environ.get('GROWN', 'scan'))} of {RUNS} runs "
                "found it, "
                f"{len(a)} and {len(b)} windows of {JOINED} s")


if __name__ == "__main__":
    main()
