# SPDX-License-Identifier: BSD-2-Clause
"""The number of samples is CPU time times hz; no sample is dropped for being hard."""
import os
import sys

import harness

ALONE = True  # the clock's phase and the run queue matter
TOLERANCE = 0.02
# Far from a multiple of the kernels' ticks (100, 250, 300, 1000 Hz).  At 499 the clock stays at one phase of a
# 250 Hz tick for a second, and others run just behind ticks: up to 3.9 % too many samples were seen, 0.7 % at 463.
HZ = 463


def counted(kind, hz, seconds, python=None):
    """(samples, CPU seconds by the program's own clock) of a program profiled for its whole life."""
    python = python or harness.interpreter()
    folder = harness.temporary()
    target_env = {"E2E_DIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    run = harness.profile(None, hz=hz, duration=None, env=target_env, limit_s=90, command=list(
        python.command) + [os.path.join(harness.TARGETS, "burn.py"), str(seconds), kind])
    with open(os.path.join(folder, "cpu.json"), encoding="utf-8") as file:
        truth = harness.json.load(file)
    return harness.samples(run.out, pid=truth["pid"]), truth["cpu_s"], run


def check(kind, hz, seconds):
    samples, cpu_s, run = counted(kind, hz, seconds)
    got, wanted = harness.total(samples), cpu_s * hz
    # Beyond 2 %: what the clock's phase may add or take for each thread, and process start and exit.
    slack = TOLERANCE * wanted + 8
    print("%d samples, CPU time x hz %.0f (%.2f %%)" % (got, wanted, 100 * got / wanted), file=sys.stderr)
    assert abs(got - wanted) <= slack, "%d samples, %.0f wanted: %s" % (got, wanted, run.err)
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
