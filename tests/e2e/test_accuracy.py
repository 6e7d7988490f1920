# SPDX-License-Identifier: BSD-2-Clause
"""The number of samples is CPU time times hz; no sample is dropped for being hard."""
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
    got, wanted = harness.total(samples), cpu_s * hz
    # Beyond 2 %: what the clock's phase may add or take for each thread, and process start and
    # exit.
    slack = TOLERANCE * wanted + 8
    said = "%d samples, CPU time x hz %.0f (%.2f %%), stolen x hz %.0f" % (
        got, wanted, 100 * got / wanted, stolen)
    print(said, file=sys.stderr)
    # A part of what was stolen was so while the program ran.
    assert wanted - slack <= got <= wanted + slack + stolen, "%s: %s" % (said, run.err)
    ns = sum(s.ns for s in samples)
    assert abs(ns / got * hz / 1e9 - 1) < 0.001, "%.0f ns a sample at %d Hz" % (ns / got, hz)


def test_python_at_99():
    check("python", 99, 8)


def test_python_at_1999():
    check("python", 1999, 3)


def test_kernel_work():
    check("kernel", HZ, 4)


def test_threads():
    check("threads", HZ, 5)
