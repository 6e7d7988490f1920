# SPDX-License-Identifier: BSD-2-Clause
"""What --events cuda costs: a launch whose stack is not taken, beside an empty program at the same
function in the same run; whether launches at full speed are all counted, and how many stacks they
send; how long links take to come and go; what the maps take."""
import os
import re
import subprocess
import time

import harness
import measure
import probe_hits
import switches

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH_NS = 650  # wanted at most, at a site that the kernel emulates
LINKS_MS = 50  # the same, of all functions
STACKS_A_SECOND = 100
MAPS_MIB = 10
WAIT_S = 30
SETTLE_S = 12  # the first window, in which more stacks are taken than later


def build():
    """(library, program that is linked with it)"""
    directory = harness.temporary()
    compiler = os.environ.get("CC", "cc")
    library = os.path.join(directory, "libcuda.so.1")
    program = os.path.join(directory, "cuda_launches")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library,
                    os.path.join(HERE, "workloads", "cuda_library.c")], check=True)
    subprocess.run([compiler, "-O2", "-o", program,
                    os.path.join(HERE, "workloads", "cuda_launches.c"), library,
                    "-Wl,-rpath," + directory], check=True)
    return library, program


def a_round(calls, empty, start, plain_ns):
    """ns a launch of the empty program and of pyprofd"""
    empty.start()
    empty_ns = calls.ns() - plain_ns
    empty.stop()
    profiler = start()
    harness.wait_for(lambda: probe_hits.has_probe(profiler.pid), WAIT_S, "a probe")
    time.sleep(SETTLE_S)
    launch_ns = calls.ns() - plain_ns
    profiler.stop()
    return empty_ns, launch_ns


def at_full_speed(calls, start, count):
    """(launches a second, how many are missing, stacks a second, what pyprofd said)"""
    profiler = start()
    harness.wait_for(lambda: probe_hits.has_probe(profiler.pid), WAIT_S, "a probe")
    time.sleep(1)
    calls.count = 0
    seconds = calls.run(count) / 1e9
    said = profiler.stop().err
    profile = harness.load(profiler.out)
    info = subprocess.run([os.path.join(os.path.dirname(harness.PYPROFD), "pyprof"), "info",
                           profiler.out], stdout=subprocess.PIPE, check=True).stdout.decode()
    walks = re.search(r"(\d+) walks in on_probe", info.replace(",", ""))
    return (count / seconds, count - sum(s.values[0] for s in profile.samples),
            int(walks.group(1)) / seconds, said)


def section(pyprofd, quick, say):
    """pyprofd: starts one with options, as run.py's."""
    library, program = build()
    calls, empty = probe_hits.Calls(program), probe_hits.Empty(library, "cuLaunchKernel")
    options = ["--pid", str(calls.pid), "--events", "cuda", "--max-slowdown", "100%", "--verbose"]
    start = lambda: pyprofd(options)  # noqa: E731
    result = {}
    try:
        plain_ns = calls.ns()
        rounds = [a_round(calls, empty, start, plain_ns) for _ in range(2 if quick else 7)]
        rate, missing, stacks, said = at_full_speed(calls, start, 400000 if quick else 4000000)
    finally:
        calls.end()
        empty.end()
    bare, own = zip(*rounds)
    ratios = [mine / least for least, mine in rounds]
    low, high = measure.interval_95(ratios)
    result["empty_ns"] = {"median": measure.median(bare), "all": bare}
    result["launch_ns"] = {"median": measure.median(own), "all": own}
    result["ratio"] = {"median": measure.median(ratios), "all": ratios}
    say("cuda     a launch takes %.0f ns more (least of %d rounds %.0f; wanted: %d): %.2f times an "
        "empty program's %.0f ns (95 %%: %.2f to %.2f)"
        % (measure.median(own), len(rounds), min(own), LAUNCH_NS, measure.median(ratios),
           measure.median(bare), low, high))
    result.update(rate=rate, missing=missing, stacks_a_second=stacks)
    say("cuda     %.0f launches a second: %d are missing (wanted: none), %.1f stacks a second "
        "(wanted: less than %d)" % (rate, missing, stacks, STACKS_A_SECOND))
    links = [float(ms) for ms in re.findall(r"(?:probes after|taken off in) ([0-9.]+) ms", said)]
    maps = re.search(r"([0-9.]+) MiB of maps", said)
    result.update(links_ms=links, maps_mib=float(maps.group(1)) if maps else None)
    say("cuda     links come and go in %s ms (wanted: %d each)"
        % (" and ".join("%.1f" % ms for ms in links), LINKS_MS))
    return result
