#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""case_ways.py CASES ID WORK OUT [--few]   One run of a case's program under all ways of profiling
it at once; --few: for half as long at twice the rate.

The ways: `pid` (one kind, one process), `system-wide` (one kind, the whole machine) and
`all-events` (the default: all events into a directory, of which the case gets its kind).  A probe
is no event of the default, and allocations are of one process only: mode usdt has the first two
ways, mode memory the first.  The runner of CASES (run_cases.py) starts a program once and this
script as its profiler, which starts a pyprofd for each way.  When they have ended the runner is
forked: each process goes on with the profile of one way and writes OUT/WAY.json, which is what
`run_cases.py --json` writes.

PYPROFD and PYPROF in the environment name the programs.  Exit status: that of the runner, 1 when
any way failed."""
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pprof  # noqa: E402

MODES = ("cpu", "offcpu", "gil", "usdt", "memory", "cuda")
WAYS = ("pid", "system-wide", "all-events")
WAYS_OF = {"usdt": WAYS[:2], "memory": WAYS[:1], "cuda": WAYS[:2]}  # of other modes: all
EVENTS = {"memory": "alloc"}  # others are called as their mode
PROGRAM_S = 60
ASKED = ".asked"  # what was asked of the profiler, and how it ended


# ---------------------------------------------------------------- as the runner's profiler

def ways_of(mode):
    return WAYS_OF.get(mode, WAYS)


def command(way, mode, pid, hz, duration, out, probe, binary):
    words = [os.environ["PYPROFD"], "--hz", hz, "--duration", duration]
    if way == "pid":
        words += ["--pid", pid]
    if mode == "usdt":
        words += ["--probe", "usdt:%s:%s" % (binary, probe)]
    elif way != "all-events" and mode != "cpu":
        words += ["--events", EVENTS.get(mode, mode)]
    return words + ["-o", out_of(way, out)]


def out_of(way, out):
    return out + "." + way + ("/" if way == "all-events" else "")


def profile(mode, pid, hz, duration, out, *probe):
    """Runs a pyprofd for each way; their exit statuses go to OUT.asked."""
    running = {
        way: subprocess.Popen(command(way, mode, pid, hz, duration, out, *probe))
        for way in ways_of(mode)
    }

    def forward(number, _):
        for process in running.values():
            process.send_signal(number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    status = {way: process.wait() for way, process in running.items()}
    with open(out + ASKED, "w", encoding="ascii") as file:
        json.dump({"mode": mode, "seconds": duration, "status": status}, file)
    # The runner wants a file there; what is loaded is what out_of() says.
    with open(out, "w", encoding="ascii") as file:
        file.write(" ".join(running))
    return max(map(abs, status.values()))


# ---------------------------------------------------------------- around the runner

def merged(mode, directory):
    """The one kind out of the directory of all.  A profile that says that much of the CPU time is
    missing is refused."""
    pyprof, out = os.environ["PYPROF"], directory.rstrip("/") + ".pb.gz"
    if mode == "cpu":
        said = subprocess.run([pyprof, "report", "--kind", mode, directory], stdout=subprocess.PIPE,
                              universal_newlines=True, check=True).stdout.split("\n")[0]
        if "; only " in said:
            raise ValueError(said)
    subprocess.run([pyprof, "export", "--kind", mode, "-o", out, directory], check=True)
    return out


class Ways:
    """Stands between the runner's main() and its functions.  The runner judges rates: it takes the
    program's counters of the last seconds before its profiler ended, and divides what the profile
    has by the time asked for.  Several that run at once do not begin and end together, so here both
    are of the time that the profile itself covers."""

    def __init__(self, runner, directory):
        self.runner, self.directory, self.way, self.status = runner, directory, None, {}
        self.load_one, self.run_one = runner.load_profile, runner.run_case
        self.cpu_of = runner.cpu_between
        ways, truth = self, runner.TruthLog

        class Truth(truth):
            def __init__(self, tmp):
                super().__init__(tmp)
                ways.fork(os.path.join(tmp, "profile.out"))

            def window(self, begin, end):
                if not begin:
                    return super().window(begin, end)
                return {key: value * ways.scale(begin, end) for key, value in
                        super().window(ways.begin_ns, ways.end_ns).items()}

        runner.TruthLog, runner.load_profile, runner.run_case = Truth, self.load, self.run
        runner.cpu_between = lambda rows, begin, end: (
            self.cpu_of(rows, self.begin_ns, self.end_ns) * self.scale(begin, end))

    def scale(self, begin, end):
        return (end - begin) / (self.end_ns - self.begin_ns)

    def fork(self, out):
        """Returns once for each way; the process that forked ends when they have."""
        self.out = out
        with open(out + ASKED, encoding="ascii") as file:
            self.asked = json.load(file)
        self.status = self.asked["status"]
        sys.stdout.flush()
        children = []
        for way in ways_of(self.asked["mode"]):
            pid = os.fork()
            if not pid:
                self.way = way
                self.open_profile()
                return
            children.append(pid)
        os._exit(max([bool(os.waitpid(pid, 0)[1]) for pid in children]))

    def open_profile(self):
        """The clock of the program's counters is the monotonic one."""
        self.path = out_of(self.way, self.out)
        if self.way == "all-events":
            self.path = merged(self.asked["mode"], self.path)
        found = pprof.load(self.path)
        self.begin_ns = found.time_ns - (time.time_ns() - time.monotonic_ns())
        self.end_ns = self.begin_ns + found.duration_ns

    def load(self, _, *rest):
        profile = self.load_one(self.path, *rest)
        # The runner divides by the time that it asked for.
        factor = float(self.asked["seconds"]) * 1e9 / (self.end_ns - self.begin_ns)
        profile.samples = [
            sample._replace(value=sample.value * factor) for sample in profile.samples
        ]
        return profile

    def run(self, case, env, options):
        # Three agents take longer to begin than the one for which a program's longest life was
        # chosen; it is told to stop.
        case.j.setdefault("seconds", PROGRAM_S)
        result = self.run_one(case, env, options)
        # Without a profile the same is true of all ways.
        for way in [self.way] if self.way else ways_of(case.j.get("mode", "cpu")):
            if way in self.status:
                result["profiler_rc"] = self.status[way]
            with open(os.path.join(self.directory, way + ".json"), "w", encoding="utf-8") as file:
                json.dump([result], file)
        return result


def main():
    if sys.argv[1] == "--profile":
        return profile(*sys.argv[2:])
    cases, name, work, directory, *few = sys.argv[1:]
    sys.path.insert(0, os.path.abspath(cases))
    import run_cases
    Ways(run_cases, os.path.abspath(directory))
    template = "%s %s --profile {mode} {pid} {hz} {duration} {out} '{probe}' '{binary}'" % (
        sys.executable, os.path.abspath(__file__))
    sys.argv = [
        "run_cases.py", cases, "--work", work, "--only",
        "^%s$" % name, "--profiler", template
    ]
    if few:
        sys.argv += ["--duration", "3", "--hz", "199"]
    for mode in MODES[1:]:
        sys.argv += ["--mode-profiler", "%s=%s" % (mode, template)]
    return run_cases.main()


if __name__ == "__main__":
    sys.exit(main())
