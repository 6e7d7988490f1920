#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""case_all_events.py PYPROFD PYPROF KIND OUT OPTION...   Stands for a pyprofd that writes one kind into one file: it runs
as it does by default, with all events and for the whole machine, into a folder, of which this kind is merged
into OUT.  One that says that much of the CPU time is missing is a failure."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile


def main():
    pyprofd, pyprof, kind, out = sys.argv[1:5]
    folder = tempfile.mkdtemp(prefix="pyprofd-case.", dir=os.path.dirname(os.path.abspath(out)))
    try:
        run = subprocess.Popen([pyprofd] + sys.argv[5:] + ["-o", folder + "/"])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: run.send_signal(number))
        status = run.wait()
        if status:
            return status
        said = subprocess.run([pyprof, "report", "--kind", kind, folder], stdout=subprocess.PIPE,
                              universal_newlines=True, check=True).stdout.split("\n")[0]
        if kind == "cpu" and "; only " in said:
            print(said, file=sys.stderr)
            return 1
        return subprocess.run([pyprof, "export", "--pprof", "--kind", kind, "-o", out, folder], check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
