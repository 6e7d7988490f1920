# SPDX-License-Identifier: BSD-2-Clause
"""What walks may cost, and that they tell what they took."""
import glob
import os
import re
import subprocess

import harness


def oldest():
    chosen = {i.version: i for i in harness.interpreters() if i.version >= (3, 6)}
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())[:1]]


def info(path):
    pyprof = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
    return subprocess.run([pyprof, "info", path], check=True, capture_output=True, text=True, timeout=60).stdout


def walks(path, program):
    """(runs, the longest time as it is shown)"""
    found = re.search(r"^time a walk +(\d+) walks in %s; .*, all up to ([0-9.]+ [a-z]+)$" % program, info(path), re.M)
    return (int(found.group(1)), found.group(2)) if found else (0, "")


def test_info_tells_how_long_walks_took():
    with harness.Target("threads.py") as target:
        folder = harness.temporary()
        harness.profile(target.pid, duration=2, out=folder, options=["--events", "cpu,offcpu"])
        (path,) = glob.glob(os.path.join(folder, "**", "*-cpu.pb.gz"), recursive=True)
        taken = harness.total(harness.samples(path))
        runs, longest = walks(path, "on_cpu_sample")
        assert taken and runs >= taken, "%d walks of %d samples" % (runs, taken)
        assert longest.endswith(("us", "ms")), longest
        assert walks(path, "on_switch")[0] > 0, info(path)


def test_budget_cpu_bounds_the_walks(interpreter):
    """1,999 deep stacks a second: what is walked follows the budget, what is counted does not."""
    counts = {}
    with harness.Target("deep.py", 1000, python=interpreter) as target:
        for percent in (1, 30):
            run = harness.profile(target.pid, hz=1999, duration=3, options=["--budget-cpu", percent])
            samples = harness.samples(run.out, pid=target.pid)
            counts[percent] = harness.total(samples)
            assert "samples_weighted" in run.err, run.err
    assert 0 < counts[1] < counts[30] / 4, counts


test_budget_cpu_bounds_the_walks.cases = oldest
