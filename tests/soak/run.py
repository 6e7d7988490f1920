#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [--minutes 20] [--kills 100] [--rate 200]   What stays of pyprofd when it stays on.

First it runs as it does by default, all events into a store, for MINUTES beside RATE programs a
second that end at once. After the first quarter of that time, in which tables, caches and the
allocator reach their size, nothing may grow: memory of the agent and its children, memory and
entries of the BPF maps, descriptors; and the store has no gap.  That asks for a machine that does
nothing else: what others start is followed, too.

Then it is killed (SIGKILL) KILLS times at random moments, and started again into the same store:
the store can be read after each, and has every window but the open one.

Prints a row for each reading and, at the end, what was held and what was not; exit 1 when anything
was not.  docs/reliability.md keeps the figures.
"""
import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TESTS, name) for name in ("bench", "e2e", "hostile")]
import harness  # noqa: E402
import kernel_bpf  # noqa: E402
import measure  # noqa: E402
import monitor  # noqa: E402

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
READ_EVERY_S = 10
# Of the run, in which all may still grow to its size.
SETTLE_SHARE = 0.25
# The second half of the readings against the first: an allocator's pages come and go.
SLACK = {
    "resident_kib": (0.02, 512),
    "anonymous_kib": (0.02, 512),
    "map_kib": (0, 0),
    "map_entries": (0.05, 256),
    "descriptors": (0.1, 4),
}
KILL_INTERVAL_S = 1
# A window's way from its end to the disk, on a machine that others keep busy.
KILL_SLACK_S = 2.5
WINDOW = re.compile(r"(\d+)-(\d+)-cpu\.pb\.gz")


def children_kib(pid, key):
    """Of the agent and of its children."""
    return sum(measure.status_kib(each, key) for each in monitor.tree(pid))


def descriptors(pid):
    return sum(measure.fd_count(each) for each in monitor.tree(pid))


def state(pid):
    maps = kernel_bpf.held(pid, "map_id")
    return {"resident_kib": children_kib(pid, "VmRSS"),
            "anonymous_kib": children_kib(pid, "RssAnon"),
            "map_kib": kernel_bpf.map_bytes(maps) // 1024,
            # Caches (LRU) fill up to their bound and stay there.
            "map_entries": kernel_bpf.entries(maps, kernel_bpf.HASH),
            "descriptors": descriptors(pid)}


def windows(store):
    """[(begin, end)] in s, sorted."""
    found = []
    for _, _, files in os.walk(store):
        for name in files:
            match = WINDOW.fullmatch(name)
            if match:
                begin_ms, length_ms = map(int, match.groups())
                found.append((begin_ms / 1000, (begin_ms + length_ms) / 1000))
    return sorted(found)


def gaps(found, limit_s):
    return [(a[1], b[0]) for a, b in zip(found, found[1:]) if b[0] - a[1] > limit_s]


class Verdict:
    def __init__(self):
        self.bad = 0

    def hold(self, what, is_held, figures):
        print("%s %s: %s" % ("ok" if is_held else "not ok", what, figures), flush=True)
        self.bad += not is_held


def judge_growth(verdict, rows):
    """The medians of the two halves: one reading may catch a window's peak."""
    half = len(rows) // 2
    for key, (share, constant) in SLACK.items():
        before = statistics.median(row[key] for row in rows[:half])
        after = statistics.median(row[key] for row in rows[half:])
        verdict.hold("%s does not grow" % key, after <= before * (1 + share) + constant,
                     "%d, then %d (least %d, most %d)" % (
                         before, after, min(row[key] for row in rows),
                         max(row[key] for row in rows)))


def stay_on(verdict, minutes, rate, store):
    process = harness.start(store, hz=99)
    harness.sampling(process)
    begin_s = time.monotonic()
    rows = []
    with harness.Target("spawns.py", rate, "true") as target:
        while time.monotonic() - begin_s < 60 * minutes:
            time.sleep(READ_EVERY_S)
            assert process.poll() is None, harness.said(process)
            row = state(process.pid)
            passed_s = time.monotonic() - begin_s
            print("%5d s  " % passed_s + "  ".join("%s %d" % item for item in row.items()),
                  flush=True)
            if passed_s > 60 * minutes * SETTLE_SHARE:
                rows.append(row)
        target.stop()
        started = len(target.read("pids.json"))
    run = harness.finish(process, signal_number=signal.SIGINT)
    verdict.hold("pyprofd ends well", run.rc == 0, "exit status %d" % run.rc)
    judge_growth(verdict, rows)
    found = windows(store)
    covered_s = found[-1][1] - found[0][0]
    verdict.hold("no window is missing", not gaps(found, 0.1),
                 "%d windows of %.0f s, gaps: %s" % (len(found), covered_s, gaps(found, 0.1)))
    print("%d programs ended meanwhile; pyprofd said:\n%s" % (started, run.err))


def read_store(store):
    """`pyprof report` reads every profile of the store, and complains about none."""
    done = subprocess.run([PYPROF, "report", store],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode == 0 and not done.stderr.strip(), done.stderr.strip()


def lost_s(store, sampling_s, killed_s):
    """What a run that was killed has not left, but for its open window."""
    own = [end for begin, end in windows(store) if begin >= sampling_s - 1 and end <= killed_s + 1]
    recorded_s = max(own) if own else sampling_s
    return killed_s - recorded_s - KILL_INTERVAL_S


def be_killed(verdict, kills, rate, store, seed):
    print("SEED=%d" % seed)
    moments = random.Random(seed)
    worst_s, unreadable = 0.0, []
    with harness.Target("spawns.py", rate, "true") as target:
        for number in range(kills):
            process = harness.start(store, hz=99,
                                    options=["--interval", str(KILL_INTERVAL_S)])
            harness.sampling(process)
            sampling_s = time.time()
            time.sleep(6 * moments.random())
            assert process.poll() is None, harness.said(process)
            killed_s = time.time()
            process.kill()
            process.wait()
            worst_s = max(worst_s, lost_s(store, sampling_s, killed_s))
            is_whole, why = read_store(store) if windows(store) else (True, "")
            if not is_whole:
                unreadable.append((number, why))
        target.stop()
    verdict.hold("the store can be read after each kill", not unreadable,
                 "%d kills, %d windows, not after %s" % (kills, len(windows(store)), unreadable))
    verdict.hold("only the open window is lost", worst_s <= KILL_SLACK_S,
                 "at most %.2f s more than it" % worst_s)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rate", type=int, default=200, help="short programs a second")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    harness.need(os.geteuid() == 0, "pyprofd has to be root here")
    verdict = Verdict()
    directory = harness.temporary()
    try:
        if options.minutes:
            stay_on(verdict, options.minutes, options.rate, os.path.join(directory, "on/"))
        if options.kills:
            be_killed(verdict, options.kills, options.rate, os.path.join(directory, "killed/"),
                      options.seed)
    finally:
        harness.clean_up()
    print("soak: %s" % ("not ok: %d" % verdict.bad if verdict.bad else "ok"))
    return 1 if verdict.bad else 0


if __name__ == "__main__":
    sys.exit(main())
