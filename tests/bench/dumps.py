# SPDX-License-Identifier: BSD-2-Clause
"""CPU time of a dump of 100 programs: pyprof dump and what it costs the running pyprofd, beside
py-spy dump for each."""
import os
import resource
import subprocess
import time

import harness
import measure

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
PROGRAMS = 100


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ask(words):
    """(CPU time of the program, wall time, what it printed)"""
    cpu, wall = children_cpu_s(), time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    out = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, "%s: %s" % (words[0], done.stderr.decode(
        "utf-8", "replace")[-300:])
    return children_cpu_s() - cpu, time.monotonic() - wall, out


def ours(pids, rounds):
    """The agent's own work goes on meanwhile: what it costs in as much time without a dump is taken
    off."""
    path = os.path.join(harness.temporary(), "live.sock")
    process = harness.start(harness.temporary(), hz=99, options=["--live", path])
    try:
        harness.wait_for(lambda: os.path.exists(path), 60, "the live socket")
        time.sleep(5)
        words = [PYPROF, "dump", "--socket", path, "--pid", ",".join(str(p) for p in pids)]
        results = []
        for _ in range(rounds):
            before, start = measure.own_cpu_s(process.pid), time.monotonic()
            cpu, wall, out = ask(words)
            agent = measure.own_cpu_s(process.pid) - before
            span = time.monotonic() - start
            before = measure.own_cpu_s(process.pid)
            time.sleep(span)
            idle = measure.own_cpu_s(process.pid) - before
            results.append((cpu + max(0.0, agent - idle), wall,
                            out.count("\nprocess ") + out.startswith("process ")))
        return results
    finally:
        harness.finish(process, signal_number=2)


def theirs(py_spy, pids):
    return [ask([py_spy, "dump", "--pid", str(p)])[:2] for p in pids]


def section(peers, quick, say):
    with harness.Target("fleet.py", PROGRAMS, 0.8, ready=False) as target:
        target.wait("ready", 180)
        pids = target.read("pids.json")
        mine = ours(pids, 3 if quick else 7)
        result = {
            "programs": len(pids), "cpu_s": [m[0] for m in mine], "wall_s": [m[1] for m in mine],
            "shown": [m[2] for m in mine]
        }
        say("dump     %d programs: first %.3f s of CPU, then median %.3f s (wall %.2f s); %d shown"
            % (len(pids), mine[0][0], measure.median([m[0] for m in mine[1:]]),
               measure.median([m[1] for m in mine[1:]]), mine[-1][2]))
        if "py-spy" not in peers.path:
            say("dump     py-spy skipped: %s" % peers.why["py-spy"])
            return result
        peer = theirs(peers.path["py-spy"], pids)
        result["py_spy_cpu_s"] = sum(p[0] for p in peer)
        result["ratio_first"] = mine[0][0] / result["py_spy_cpu_s"]
        result["ratio"] = measure.median([m[0] for m in mine[1:]]) / result["py_spy_cpu_s"]
        say("dump     py-spy dump summed over them: %.2f s of CPU; ours / theirs: first %.3f, then "
            "%.3f (wanted < 0.25)"
            % (result["py_spy_cpu_s"], result["ratio_first"], result["ratio"]))
    return result
