# SPDX-License-Identifier: BSD-2-Clause
"""--max-slowdown of CUDA: probes of launches are on for a part of the time, and sums stand for all
of it."""
import os
import re
import signal
import subprocess

import harness
import test_probes

RATE, WINDOW_S, PERIOD_S = 50000, 1, 4


class Launches:
    """The generator of the fakes, which launches at a rate that probes do not change."""

    def __init__(self, seconds):
        directory = harness.need_fakes()
        self.process = subprocess.Popen(
            [os.path.join(directory, "launches"), "2", str(RATE), str(seconds)],
            env=dict(os.environ, LD_LIBRARY_PATH=directory), stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def end(self):
        """Its closing line: the driver's checksum over all arguments is right, or it fails."""
        self.process.terminate()
        said = self.process.communicate(timeout=120)[0].decode()
        assert self.process.returncode == 0 and "arguments ok" in said, said
        return said


def windows(directory):
    """[(launches, seconds, comments)], the first ones and the last one left out: in these links
    come and go"""
    paths = sorted(os.path.join(path, name) for path, _, names in os.walk(directory)
                   for name in names if name.endswith("-cuda.pb.gz"))
    found = []
    for path in paths[3:-1]:
        profile = harness.load(path)
        found.append((sum(s.values[0] for s in profile.samples), profile.duration_ns / 1e9,
                      profile.comments))
    return found


def run(budget, seconds):
    test_probes.need_links()
    launches = Launches(seconds + 14)  # the run begins when it has its probes, 10 s at most
    out = harness.temporary()
    process = harness.start(out + "/", launches.pid, hz=None, duration=seconds,
                            options=["--events", "cuda", "--interval", "%ds" % WINDOW_S,
                                     "--max-slowdown", budget + "%"])
    ended = harness.finish(process, seconds + 60)
    assert ended.rc == 0, ended.err
    launches.end()
    return out, windows(out), ended.err


def test_a_short_run_begins_when_its_probes_are_there():
    """Loading their programs takes seconds where the CPUs are busy."""
    test_probes.need_links()
    launches = Launches(16)
    ended = harness.profile(launches.pid, hz=None, duration=1, limit_s=90,
                            out=harness.temporary() + "/", options=["--events", "cuda", "-v"])
    launches.end()
    said = ended.err
    # Not where the machine is too busy even for that.
    harness.need("not all probes are there" not in said, "the probes took more than 10 s")
    assert 0 < said.find("places have probes after") < said.find("profiling at "), said


def test_sums_of_a_part_of_the_time_stand_for_all_of_it():
    """Probes are on once in each 4 s, at any moment: the sum is off by one of these at most."""
    out, seen, said = run("0.4", harness.times(24, 40))
    launches = sum(count for count, _, _ in seen)
    seconds = sum(length for _, length, _ in seen)
    told = re.compile(r"probe=cuda_launch hits=(\d+) ns_per_hit=(\d+)(?: on=([0-9.]+))?")
    hits = [told.search(comment) for _, _, comments in seen for comment in comments]
    hits = [match for match in hits if match]
    spent = sum(int(m.group(1)) * int(m.group(2)) for m in hits) / 1e9 / seconds
    print("%.3f of the launches, by %.3f of a CPU" % (launches / seconds / RATE, spent))
    assert abs(launches / seconds / RATE - 1) < 1.2 * PERIOD_S / seconds, (launches, seconds, said)
    assert spent < 0.01, (spent, said)  # what ten seconds save comes on top
    assert any(m.group(3) for m in hits), hits
    table = subprocess.run([os.path.join(os.path.dirname(harness.PYPROFD), "pyprof"), "gpu", out],
                           stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "sums are scaled" in table and "cuLaunchKernel" in table, table
    assert "--max-slowdown allows more" in said, said


test_sums_of_a_part_of_the_time_stand_for_all_of_it.alone = "sleepers"
test_sums_of_a_part_of_the_time_stand_for_all_of_it.limit_s = 180


def test_a_budget_that_suffices_leaves_sums_exact():
    _, seen, said = run("100", 6)
    for count, length, comments in seen:
        assert abs(count / length / RATE - 1) < 0.03, (seen, said)
        assert not any(" on=" in comment for comment in comments), comments
    assert "--max-slowdown allows" not in said, said


def test_a_killed_pyprofd_leaves_no_breakpoint_while_launches_are_off():
    launches = Launches(12)
    process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), launches.pid, hz=None,
                            options=["--events", "cuda", "--max-slowdown", "0.2%"])
    test_probes.await_sites(process, 10)
    harness.wait_for(lambda: "--max-slowdown" in harness.said(process), 30, "launches are bounded")
    process.send_signal(signal.SIGKILL)
    process.wait()
    launches.end()
