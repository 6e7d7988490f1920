# SPDX-License-Identifier: BSD-2-Clause
"""CPU time of programs that allocate, by themselves, under pyprofd --events alloc, with every free
(leaks=yes), and under memray."""
import os
import signal
import statistics
import subprocess
import sys
import time

import harness

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads", "allocs.py")


def run(words, options=None):
    """CPU time of 1,000 rounds, in s; with options, pyprofd's beside."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        if options is not None:
            profiler = harness.start(os.path.join(harness.temporary(), "alloc.pb.gz"),
                                     program.pid, None, options=options)
        out, err = program.communicate()
        if options is not None:
            done = harness.finish(profiler, signal_number=signal.SIGINT)
            assert done.rc == 0, done.err
    assert program.returncode == 0, err.decode("utf-8", "replace")[-300:]
    return float(out.split()[-1]) / 1000


def tools(peers, python, what, seconds):
    """The program alone comes first."""
    words = [python, WORK, what, str(seconds)]
    chosen = [("alone", words, None), ("alloc", words, ["--events", "alloc"]),
              ("leaks", words, ["--events", "alloc", "--set", "capture.leaks=yes"]),
              ("no bound", words, ["--events", "alloc", "--max-slowdown", "1000x"])]
    if "memray" in peers.path:
        memray = [peers.path["memray"], "run", "-q", "-f", "-o"]
        for name, more in (("memray", []), ("memray --native", ["--native"])):
            chosen.append((name, memray + [
                os.path.join(harness.temporary(), "memray.bin"), *more, WORK, what,
                str(seconds)], None))
    return chosen


def section(peers, quick, say):
    result = {}
    venv = os.path.join(peers.venv, "bin", "python")
    python = venv if os.access(venv, os.X_OK) else sys.executable
    for what in ("arrays", "blocks"):
        times = {}
        for _ in range(2 if quick else 5):
            for name, words, options in tools(peers, python, what, 4 if quick else 15):
                times.setdefault(name, []).append(run(words, options))
                time.sleep(0.2)
        alone = statistics.median(times["alone"])
        noise = (max(times["alone"]) - min(times["alone"])) / alone
        for name, values in times.items():
            ratio = statistics.median(values) / alone
            result["%s %s" % (what, name)] = {"cpu_s": values, "ratio": ratio}
            say("%-8s %-16s %6.3f s of CPU time, %+6.1f %% (noise %.1f %%)" % (
                what, name, statistics.median(values), 100 * (ratio - 1), 100 * noise))
    if "memray" not in peers.path:
        say("%-8s no memray: %s" % ("alloc", peers.why.get("memray")))
    return result
