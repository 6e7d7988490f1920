# SPDX-License-Identifier: BSD-2-Clause
"""What samples see of a thread that works for some 20 us to 1 ms at a time: the share of its CPU
time, by its own clock, that pyprofd and perf record count, both in the same run; and how much of
its work itself is in pyprofd's samples that hit user code."""
import os
import re
import subprocess

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
HZ = 1999
BURSTS = (20, 200), (50, 250), (100, 400), (200, 800), (
    1000, 1000)  # microseconds of work and of rest


def build():
    program = os.path.join(harness.temporary(), "bursts")
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O2", "-o", program,
                    os.path.join(HERE, "workloads", "bursts.c")], check=True)
    return program


def perf_samples(perf, out, pid):
    text = subprocess.run([perf, "script", "-i", out, "-F", "pid,tid,period"], capture_output=True,
                          text=True, check=True).stdout
    return len(re.findall(r"^\s*%d/%d\s" % (pid, pid), text, re.M))


def once(program, work_us, rest_us, seconds, starts):
    profilers = {name: start() for name, start in starts.items()}
    try:
        with subprocess.Popen(
            [program, str(work_us), str(rest_us), str(seconds)], stdout=subprocess.PIPE,
                text=True) as process:
            cpu_ns, bursts = [int(word) for word in process.communicate()[0].split()]
    finally:
        for profiler in profilers.values():
            profiler.stop()
    return cpu_ns, bursts, process.pid, {name: profiler.out for name, profiler in profilers.items()}


def section(pyprofd, perf_record, perf, quick, say):
    """perf_record: None where there is no perf."""
    result, program = {}, build()
    starts = {"pyprofd": pyprofd}
    if perf_record:
        starts["perf"] = perf_record
    for work_us, rest_us in BURSTS[1::2] if quick else BURSTS:
        cpu_ns, bursts, pid, outs = once(program, work_us, rest_us, 2 if quick else 5, starts)
        due = cpu_ns * HZ / 1e9
        ours = harness.samples(outs["pyprofd"], pid=pid)
        counts = {"pyprofd": harness.total(ours)}
        in_user_code = sum(sample.count for sample in ours if not harness.kernel_frames(sample))
        seen_us = in_user_code * 1e6 / HZ / bursts
        if perf_record:
            counts["perf"] = perf_samples(perf, outs["perf"], pid)
        own_us = cpu_ns / 1e3 / bursts
        result[str(work_us)] = {"cpu_ns": cpu_ns, "bursts": bursts, "due": due, "samples": counts,
                                "in_user_code": in_user_code}
        say("bursts   of %.0f us: %s of the program's own CPU time, counting error %.1f points; of "
            "the %d us of work "
            "pyprofd saw %.0f (%.0f)" %
            (own_us, ", ".join("%s %.1f %%" % (name, 100 * count / due)
                               for name, count in counts.items()), 100 / due ** 0.5, work_us,
             seen_us, seen_us / max(1, in_user_code) ** 0.5))
    return result
