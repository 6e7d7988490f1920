# SPDX-License-Identifier: BSD-2-Clause
"""Shared resources: a process that asks for more than its part takes nothing from the others."""
import glob
import re
import signal

import harness

LEFT_OUT = "[stack left out: its process has too many]"


def test_endless_code_takes_no_names_from_others():
    python = harness.interpreter((3, 11))
    with harness.Target("endless_code.py", python=python) as greedy, \
            harness.light(python=python) as honest:
        directory = harness.temporary()
        pids = [greedy.pid, honest.pid]
        before = {pid: harness.scheduled_s(pid) for pid in pids}
        process = harness.start(directory + "/", pids, 999,
                                options=["--interval", "2", "--events", "cpu"])
        harness.sampling(process)
        end = harness.cpu_of(greedy.pid) + 3
        harness.wait_for(lambda: harness.cpu_of(greedy.pid) >= end, 60, "its work")
        run = harness.finish(process, signal_number=signal.SIGINT)
        ran = {pid: harness.scheduled_s(pid) - before[pid] for pid in pids}
        assert not honest.stop() and not greedy.stop()
    full = re.search(r"([0-9,]+) dictionary_full", run.err)
    assert full and int(full.group(1).replace(",", "")) > 1000, run.err
    windows = sorted(glob.glob(directory + "/**/*.pb.gz", recursive=True))
    assert len(windows) >= 2, windows
    total, left_out, own = {p: 0 for p in pids}, 0, []
    for window in windows:
        samples = harness.samples(window, pids=pids)
        own += [s for s in samples if s.pid == honest.pid]
        for pid in pids:
            total[pid] += sum(s.ns for s in samples if s.pid == pid)
        left_out += sum(
            s.ns for s in samples if s.pid == greedy.pid and s.frames[0].name == LEFT_OUT)
    harness.expect_share(own, lambda s: harness.holds(s, "<module>", "main", "burn_python"), 0.97,
                         "the honest program")
    # Its samples count all the same, and say why they have no stack.
    assert left_out > 0.02 * total[greedy.pid], (left_out, total)
    ratio, truth = total[greedy.pid] / total[honest.pid], ran[greedy.pid] / ran[honest.pid]
    assert 0.8 * truth < ratio < 1.25 * truth, (total, ran)
