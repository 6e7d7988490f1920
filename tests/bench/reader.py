#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reader.py DIRECTORY [PYPROF]   `pyprof report` beside `go tool pprof -top` on the windows of a
directory (see reader_windows.py): CPU seconds, wall seconds and peak memory of one run each, and
their ratios."""
import glob
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import made_window  # noqa: E402
import measure as measures  # noqa: E402
import reader_windows  # noqa: E402

WINDOWS, QUICK_WINDOWS = 3600, 360
NAMES = ("wall_s", "cpu_s", "peak_mib")


def peak_kib(pid):
    """Of a process and its child: `go tool` is a parent of what it runs.  Not ru_maxrss, which
    begins with the memory of the process that forked it."""
    pids = [pid]
    try:
        for path in glob.glob("/proc/%d/task/*/children" % pid):  # of each thread
            with open(path, encoding="ascii") as file:
                pids += map(int, file.read().split())
        return max(measures.status_kib(one, "VmHWM") for one in pids)
    except OSError:
        return 0


def measure(command):
    """(wall s, CPU s, peak MiB) of a command and its children."""
    begin, peak, done = time.monotonic(), 0, 0
    with open(os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    while not done:
        peak = max(peak, peak_kib(process.pid))
        time.sleep(0.01)
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
    if status:
        raise OSError("%s: status %d" % (command[0], status))
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, peak / 1024


def compare(directory, pyprof, rounds, say):
    """In turn; of each figure the smallest: what else runs on the machine only adds."""
    files = sorted(glob.glob(os.path.join(directory, "*/*/*-cpu.pb.gz")))
    result = {"files": len(files), "bytes": sum(map(os.path.getsize, files))}
    go = shutil.which("go")
    if go:  # builds it when it is the first time
        subprocess.call([go, "tool", "pprof", "-top", files[0]], stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(measure([pyprof, "report", directory]))
        if go:
            theirs.append(measure([go, "tool", "pprof", "-top", *files]))
    ours = result["pyprof"] = dict(zip(NAMES, map(min, zip(*ours))))
    line = "reader   %d windows, %.0f MB: pyprof report %%s (peak wanted <= 300)" % (
        len(files), result["bytes"] / 1e6)
    say(line % "%(wall_s).2f s, %(cpu_s).2f s of CPU, %(peak_mib).0f MiB" % ours)
    if not go:
        say("reader   go tool pprof skipped: no go")
        return result
    theirs = result["pprof"] = dict(zip(NAMES, map(min, zip(*theirs))))
    result["ratio"] = {name: ours[name] / theirs[name] for name in NAMES}
    say("reader   go tool pprof -top %(wall_s).2f s, %(cpu_s).2f s of CPU, %(peak_mib).0f MiB"
        % theirs)
    say("reader   ratio %(wall_s).3f of the time (wanted < 1), %(cpu_s).3f of the CPU time, "
        "%(peak_mib).3f of the memory"
        % result["ratio"])
    return result


def section(build, pyprof, quick, say):
    """The windows are made once and kept."""
    count = QUICK_WINDOWS if quick else WINDOWS
    directory = os.path.join(build, "reader-windows-%d" % count)
    if not os.path.isdir(directory):
        shutil.rmtree(directory + ".new", ignore_errors=True)
        reader_windows.write(directory + ".new", count, made_window.make())
        os.rename(directory + ".new", directory)
    return compare(directory, pyprof, 1 if quick else 3, say)


def main():
    pyprof = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "../../build/pyprof")
    compare(sys.argv[1], pyprof, 1, print)


if __name__ == "__main__":
    main()
