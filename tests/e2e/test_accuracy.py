# SPDX-License-Identifier: BSD-2-Clause
"""Samples add up to the CPU time; no sample is dropped for being hard.  Work that comes back at a
fixed rate is hit as often as it runs."""
import os
import sys

import harness
import waits

ALONE = "one a CPU"  # the clock's phase and the run queue matter
TOLERANCE = 0.02
HZ = 499


def counted(kind, hz, seconds, python=None):
    """(samples, CPU seconds by the program's own clock) of a program profiled for its whole
    life."""
    python = python or harness.interpreter()
    directory = harness.temporary()
    target_env = {"E2E_DIR": directory, "PYTHONDONTWRITEBYTECODE": "1"}
    run = harness.profile(None, hz=hz, duration=None, env=target_env, limit_s=90, command=list(
        python.command) + [os.path.join(harness.TARGETS, "burn.py"), str(seconds), kind])
    with open(os.path.join(directory, "cpu.json"), encoding="utf-8") as file:
        truth = harness.json.load(file)
    return harness.samples(run.out, pid=truth["pid"]), truth["cpu_s"], run


def check(kind, hz, seconds):
    stolen = waits.stolen_ns()
    samples, cpu_s, run = counted(kind, hz, seconds)
    stolen = (waits.stolen_ns() - stolen) / waits.SECOND * hz
    got, wanted = sum(s.ns for s in samples) / 1e9 * hz, cpu_s * hz
    # Beyond 2 %: what the clock's phase may add or take for each thread, and process start and
    # exit.
    slack = TOLERANCE * wanted + 8
    said = "%.0f periods, CPU time x hz %.0f (%.2f %%), stolen x hz %.0f" % (
        got, wanted, 100 * got / wanted, stolen)
    print(said, file=sys.stderr)
    # A part of what was stolen was so while the program ran.
    assert wanted - slack <= got <= wanted + slack + stolen, "%s: %s" % (said, run.err)
    # Rates vary by 30 %, each two of them around the wanted one.
    count = harness.total(samples)
    assert abs(count - got) < 3 * TOLERANCE * got + 8, "%d samples of %.0f periods" % (count, got)


def test_python_at_99():
    check("python", 99, harness.times(5, 8))


def test_python_at_1999():
    check("python", 1999, 2)


def test_kernel_work():
    check("kernel", HZ, harness.times(2.5, 4))


def test_threads():
    check("threads", HZ, harness.times(3, 5))


def test_work_on_a_grid():
    """Three functions take 1 ms each in each 100 ms.  A timer of 500 Hz that kept its period would
    hit each of them always or never."""
    directory = harness.temporary()
    run = harness.profile(None, hz=500, duration=None, limit_s=60, command=[
        *harness.interpreter().command, os.path.join(harness.TARGETS, "on_a_grid.py"), directory])
    with open(os.path.join(directory, "cpu.json"), encoding="utf-8") as file:
        truth = harness.json.load(file)
    samples = harness.samples(run.out, pid=truth["pid"])
    for name, cpu_s in truth["cpu_s"].items():
        got_s = sum(s.ns for s in samples if any(f.name == name for f in s.frames)) / 1e9
        error_s = (cpu_s / 500) ** 0.5
        print("%s: %.3f s of %.3f, %.1f errors" % (name, got_s, cpu_s, (got_s - cpu_s) / error_s))
        assert abs(got_s - cpu_s) < 5 * error_s, (name, got_s, cpu_s)


test_work_on_a_grid.alone = "sleepers"
