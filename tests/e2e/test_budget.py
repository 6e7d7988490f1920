# SPDX-License-Identifier: BSD-2-Clause
"""What walks may cost, and that they tell what they took."""
import contextlib
import glob
import os
import re
import subprocess
import time

import harness


def oldest():
    chosen = {i.version: i for i in harness.interpreters() if i.version >= (3, 6)}
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())[:1]]


def info(path):
    pyprof = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
    return subprocess.run([pyprof, "info", path], check=True, capture_output=True, text=True,
                          timeout=60).stdout


def walks(path, program):
    """(runs, the longest time as it is shown)"""
    found = re.search(r"^time a walk +(\d+) walks in %s; .*, all up to ([0-9.]+ [a-z]+)$" % program,
                      info(path), re.M)
    return (int(found.group(1)), found.group(2)) if found else (0, "")


def test_info_tells_how_long_walks_took():
    with harness.Target("threads.py") as target:
        directory = harness.temporary()
        harness.profile(target.pid, duration=1, out=directory, options=["--events", "cpu,offcpu"])
        (path,) = glob.glob(os.path.join(directory, "**", "*-cpu.pb.gz"), recursive=True)
        taken = harness.total(harness.samples(path))
        runs, longest = walks(path, "on_cpu_sample")
        assert taken and runs >= taken, "%d walks of %d samples" % (runs, taken)
        assert longest.endswith(("us", "ms")), longest
        assert walks(path, "on_switch")[0] > 0, info(path)


# An older kernel's verifier goes through several times as many, and refuses what is above a
# million.
VERIFIED_MAX = 130_000


def verified(pid):
    """Instructions that the verifier went through for each program that the process holds (kernels
    from 5.16 on)."""
    found = []
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/fdinfo/%s" % (pid, fd),
                                                encoding="ascii") as file:
            found += [int(line.split()[1]) for line in file if line.startswith("verified_insns:")]
    return sorted(found)


def test_programs_are_soon_verified():
    process = harness.start(harness.temporary(), os.getpid(), duration=60,
                            options=["--events", "cpu,offcpu,gil,mem,wakers"])
    harness.sampling(process)
    found = verified(process.pid)
    process.kill()
    process.wait()
    harness.need(found, "the kernel does not tell (before 5.16)")
    assert len(found) >= 6, found
    assert found[-1] <= VERIFIED_MAX, found


def test_max_cpu_bounds_the_walks(interpreter):
    """1,999 deep stacks a second: what is walked follows the budget, what is counted does not."""
    counts = {}
    with harness.Target("deep.py", 1000, python=interpreter) as target:
        for percent in (1, 30):
            run = harness.profile(target.pid, hz=1999, duration=2,
                                  options=["--max-cpu", percent * os.cpu_count()])
            samples = harness.samples(run.out, pid=target.pid)
            counts[percent] = harness.total(samples)
            assert percent > 1 or "samples_weighted" in run.err, run.err
    assert 0 < counts[1] < counts[30] / 4, counts


def test_long_walks_leave_no_time_out(interpreter):
    """A walk of 1,000 levels is longer than the 0.1 ms to the next sample, which the timer passes
    over."""
    with harness.Target("deep.py", 1000, python=interpreter) as target:
        out = os.path.join(harness.temporary(), "out.pb.gz")
        process = harness.start(out, target.pid, hz=9999, duration=2)
        harness.sampling(process)
        cpu, wall = harness.scheduled_s(target.pid), time.monotonic()
        run = harness.finish(process)
        share = (harness.scheduled_s(target.pid) - cpu) / (time.monotonic() - wall)
        samples = harness.samples(out, pid=target.pid)
    lost = sum(
        int(n.replace(",", ""))
        for n in re.findall(r"([0-9,]+) samples_(?:swallowed|unseen)", run.err))
    counted_s = sum(s.ns for s in samples) / 1e9
    assert counted_s + lost / 9999 > 0.93 * 2 * share, "%.2f s and %d samples of %.2f s; %s" % (
        counted_s, lost, 2 * share, run.err)
    assert counted_s < 1.07 * 2 * share, "%.2f of %.2f s" % (counted_s, 2 * share)


test_max_cpu_bounds_the_walks.cases = oldest
test_long_walks_leave_no_time_out.cases = oldest


# What a walk takes by the clock, and so how many there are, depends on the machine's other work.
test_max_cpu_bounds_the_walks.alone = "one a CPU"
test_long_walks_leave_no_time_out.alone = "one a CPU"
