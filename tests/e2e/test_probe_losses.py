# SPDX-License-Identifier: BSD-2-Clause
"""Calls whose time cannot be told are counted."""
import os
import re
import subprocess

import harness


def test_calls_that_end_by_longjmp_are_unmatched():
    harness.need(subprocess.call(["gcc", "--version"], stdout=subprocess.DEVNULL) == 0, "no gcc")
    program = os.path.join(harness.temporary(), "jumps")
    subprocess.check_call(["gcc", "-O1", "-o", program,
                           os.path.join(harness.TARGETS, "jumps.c")])
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            run = harness.profile(
                process.pid, duration=3, options=["--probe", "uprobe:%s:jumps+ret" % program])
        finally:
            process.kill()
    returned = sum(sample.count for sample in harness.samples(run.out))
    unmatched = int(re.search(r"([\d,]+) probe_unmatched", run.err).group(1).replace(",", ""))
    assert returned > 500, (returned, run.err)
    # Each that jumps is followed by one that returns, but for the first and last.
    assert abs(returned - unmatched) <= 2, (returned, unmatched)
