# SPDX-License-Identifier: BSD-2-Clause
"""What a hit of a user probe costs with pyprofd, beside an empty program at the same function in
the same run, and whether all hits are counted."""
import glob
import os
import re
import shutil
import subprocess
import time

import harness
import measure
import switches

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 4000  # calls that are timed together: two ms or so
CHUNKS = 25  # of a measurement, whose median counts
WAIT_S = 30
SETTLE_S = 1  # from then on the agent does not write the flags that are held


class Calls:
    """A program that calls a function when it is told to."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.pid, self.count = self.process.pid, 0

    def run(self, calls):
        """ns that so many calls took."""
        self.process.stdin.write("%d\n" % calls)
        self.process.stdin.flush()
        self.count += calls
        return int(self.process.stdout.readline())

    def ns(self):
        """ns a call."""
        return measure.median([self.run(CHUNK) / CHUNK for _ in range(CHUNKS)])

    def end(self):
        self.process.communicate()


class Empty(switches.Empty):
    """An empty program at the function."""

    def __init__(self, program, function="probed"):  # pylint: disable=super-init-not-called
        compiled = os.path.join(harness.temporary(), "empty_probe.bpf.o")
        clang = os.environ.get("CLANG") or shutil.which("clang-19") or "clang"
        subprocess.run([clang, "-O2", "-g", "-target", "bpf", '-DPROGRAM="%s"' % program,
                        '-DFUNCTION="%s"' % function, "-c", "-o", compiled,
                        os.path.join(HERE, "workloads", "empty_probe.bpf.c")], check=True)
        self.process = subprocess.Popen([switches.build("attach", "-lbpf"), compiled],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def has_probe(pid):
    """A pyprofd has attached one: by a link of many sites or by a perf event's."""
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if re.search(r"^link_type:\t(uprobe_multi|perf)", file.read(), re.M):
                    return True
        except OSError:
            pass
    return False


def counted(path):
    return sum(sample.count for sample in harness.samples(path))


def a_round(calls, empty, start, plain_ns):
    """ns a hit of the empty program, of pyprofd that returns at once, and of pyprofd; hits that
    are missing."""
    empty.start()
    empty_ns = calls.ns() - plain_ns
    empty.stop()
    profiler = start()
    harness.wait_for(lambda: has_probe(profiler.pid), WAIT_S, "a probe")
    time.sleep(SETTLE_S)
    held = switches.Held(profiler)
    held_ns = calls.ns() - plain_ns
    held.start()
    before = calls.count
    walked_ns = calls.ns() - plain_ns
    held.stop()
    made = calls.count - before
    held.end()
    return empty_ns, held_ns, walked_ns, made - counted(profiler.out)


def section(pyprofd, quick, say):
    """pyprofd: starts one with options, as run.py's."""
    program, result = switches.build("probe_calls"), {}
    calls, empty = Calls(program), Empty(program)
    options = ["--pid", str(calls.pid), "--probe", "uprobe:%s:probed" % program]
    try:
        plain_ns = calls.ns()
        rounds = [a_round(calls, empty, lambda: pyprofd(options), plain_ns)
                  for _ in range(3 if quick else 9)]
    finally:
        calls.end()
        empty.end()
    for name, values in zip(("empty_ns", "held_ns", "walked_ns", "missing"), zip(*rounds)):
        result[name] = {"median": measure.median(values), "all": values}
    for name, text in ("held_ns", "returns at once"), ("walked_ns", "walks the stack and counts"):
        ratios = [value / bare for value, bare in zip(result[name]["all"],
                                                      result["empty_ns"]["all"])]
        low, high = measure.interval_95(ratios)
        result[name.replace("_ns", "_ratio")] = {"median": measure.median(ratios), "all": ratios}
        say("probes   a hit that %s takes %.0f ns: %.2f times an empty program's %.0f ns (95 %%: "
            "%.2f to %.2f, %d rounds)"
            % (text, result[name]["median"], measure.median(ratios), result["empty_ns"]["median"],
               low, high, len(rounds)))
    say("probes   of %d hits a round %s are missing (wanted: none)"
        % (CHUNK * CHUNKS, ", ".join(map(str, result["missing"]["all"]))))
    return result
