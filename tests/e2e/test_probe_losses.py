# SPDX-License-Identifier: BSD-2-Clause
"""Calls whose time cannot be told are counted."""
import contextlib
import os
import re
import subprocess

import harness


@contextlib.contextmanager
def started(name):
    """(process, path of its program) of targets/NAME.c, which has begun."""
    harness.need(subprocess.call(["gcc", "--version"], stdout=subprocess.DEVNULL) == 0, "no gcc")
    program = os.path.join(harness.temporary(), name)
    subprocess.check_call(["gcc", "-O1", "-o", program,
                           os.path.join(harness.TARGETS, name + ".c")])
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process, program
        finally:
            process.kill()


def probed(process, program, function):
    """(samples, probe_unmatched) of three seconds of a function's calls."""
    run = harness.profile(
        process.pid, duration=3, options=["--probe", "uprobe:%s:%s+ret" % (program, function)])
    unmatched = re.search(r"([\d,]+) probe_unmatched", run.err)
    return harness.samples(run.out), int(unmatched.group(1).replace(",", "")) if unmatched else 0


def test_calls_that_end_by_longjmp_are_unmatched():
    with started("jumps") as (process, program):
        samples, unmatched = probed(process, program, "jumps")
    returned = sum(sample.count for sample in samples)
    assert returned > 500, returned
    # Each that jumps is followed by one that returns, but for the first and last.
    assert abs(returned - unmatched) <= 2, (returned, unmatched)


def test_calls_that_return_are_matched_while_links_come_and_go():
    """The function is called far more often than --max-slowdown allows: its links come and go."""
    with started("returns") as (process, program):
        samples, unmatched = probed(process, program, "returns")
    assert sum(sample.count for sample in samples) > 100000, samples
    # One call may be under way whenever the links have come.
    assert unmatched <= 10, unmatched
