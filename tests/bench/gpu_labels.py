# SPDX-License-Identifier: BSD-2-Clause
"""What label `gpu` adds to a sample: two pyprofds at the same time on one busy Python program, one
of which captures `cuda` as well."""
import contextlib
import os
import subprocess
import time

import harness
import kernel_bpf
import measure

HZ = 1999
# What the program that is sampled has to do with CUDA: its target, whether another process uses it.
CASES = {"no process with CUDA": ("pure.py", False),
         "beside a process with CUDA": ("pure.py", True),
         "in a process with CUDA": ("gpu_pure.py", False)}


@contextlib.contextmanager
def launching(fakes):
    """A program that launches now and then."""
    process = subprocess.Popen([os.path.join(fakes, "launches"), "1", "100", "600"],
                               stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def ns_a_sample(profilers, pid, seconds):
    """{name: ns of the program that takes most}"""
    before = {name: kernel_bpf.run_times(p.programs()) for name, p in profilers.items()}
    cpu = measure.own_cpu_s(pid)
    time.sleep(seconds)
    after = {name: kernel_bpf.run_times(p.programs()) for name, p in profilers.items()}
    samples = (measure.own_cpu_s(pid) - cpu) * HZ
    return {name: max(ns - before[name].get(number, (0, 0))[0]
                      for number, (ns, _) in runs.items()) / samples
            for name, runs in after.items()}


def one_round(start, case, seconds, turn):
    """ns a sample with the label over ns without."""
    workload, has_other = CASES[case]
    fakes = harness.need_fakes()
    arguments = [0] if workload == "pure.py" else []
    starts = {"without": ["--events", "cpu"], "with": ["--events", "cpu,cuda"]}
    with contextlib.ExitStack() as stack:
        if has_other:
            stack.enter_context(launching(fakes))
        target = stack.enter_context(harness.Target(workload, *arguments, env={"FAKES": fakes}))
        profilers = {}
        for name in sorted(starts, reverse=bool(turn % 2)):
            profilers[name] = start(HZ, harness.temporary(), options=starts[name])
            stack.callback(profilers[name].kill)
        open(target.path("go"), "w").close()
        time.sleep(4)  # libraries are found, and their program is loaded
        found = ns_a_sample(profilers, target.pid, seconds)
    return found


def compare(start, say, quick):
    """start: as run.py's pyprofd()."""
    result = {}
    for case in CASES:
        with kernel_bpf.stats():
            rounds = [one_round(start, case, 2 if quick else 5, turn)
                      for turn in range(2 if quick else 8)]
        ratios = [one["with"] / one["without"] for one in rounds]
        low, high = measure.interval_95(ratios)
        result[case] = {"rounds": rounds, "ratio": measure.median(ratios), "low": low, "high": high}
        say("gpu      %s: a sample takes %.0f ns with label gpu, %.0f without: %+.1f %% (95 %%: "
            "%+.1f to %+.1f; wanted <= 2)"
            % (case, measure.median([one["with"] for one in rounds]),
               measure.median([one["without"] for one in rounds]),
               100 * (result[case]["ratio"] - 1), 100 * (low - 1), 100 * (high - 1)))
    return result
