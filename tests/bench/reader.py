#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reader.py FOLDER [PYPROF]   `pyprof report` beside `go tool pprof -top` on the windows of a folder (see
reader_windows.py): CPU seconds, wall seconds and peak memory of one run each, and their ratios."""
import glob
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def measure(command):
    """(wall s, CPU s, peak MiB) of a command and its children."""
    begin = time.monotonic()
    with open(os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("%s: status %d" % (command[0], status))
    # `go tool` is a parent of what it runs: its children count, too.
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    folder = sys.argv[1]
    pyprof = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "../../build/pyprof")
    files = sorted(glob.glob(os.path.join(folder, "*/*/*-cpu.pb.gz")))
    size = sum(os.path.getsize(f) for f in files)
    print("%d files, %.1f MB" % (len(files), size / 1e6))
    ours = measure([pyprof, "report", folder])
    print("pyprof report        %6.1f s wall  %6.1f s CPU  %6.0f MiB" % ours)
    go = shutil.which("go")
    if not go:
        print("skip: no go")
        return
    subprocess.call([go, "tool", "pprof", "-top", files[0]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs = measure([go, "tool", "pprof", "-top", *files])
    print("go tool pprof -top   %6.1f s wall  %6.1f s CPU  %6.0f MiB" % theirs)
    print("ratio                %6.2f         %6.2f        %6.2f" % tuple(a / b for a, b in zip(ours, theirs)))


if __name__ == "__main__":
    main()
