# SPDX-License-Identifier: BSD-2-Clause
"""Time off the CPU: each wait reason compared with the program's own clocks, and the sums."""
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import waits
from waits import MS, SECOND

ALONE = True  # clocks are compared with clocks

# kind in targets/waiters.py -> label `wait`
LABELS = {
    "sleep": "sleep", "signal": "sleep", "lock": "lock", "pipe": "pipe", "unix": "unix socket",
    "tcp": "tcp socket", "udp": "udp socket", "poll": "poll", "eventfd": "eventfd",
    "terminal": "terminal", "child": "child", "file": "file", "disk": "disk", "fault": "page fault"
}
BUSY = ("file", "disk")  # these two are on the CPU for a third of the time
# The GIL on the way back, and turns on the CPU, are counted apart at the same line.
BESIDE = ("run queue", "gil")


def offcpu(target, seconds, options=()):
    """(off-CPU profile of a running target, what pyprofd said)"""
    run = harness.profile(target.pid, duration=seconds, hz=None,
                          options=["--events", "offcpu"] + list(options))
    return waits.Waits(run.out, target.pid, "off_cpu"), run.err


def is_at(kind):
    line = waits.mark_line("waiters.py", kind)
    return lambda s: waits.leaf(s) is not None and waits.leaf(s).line == line


def check_kind(profile, kind, truth, tolerance, slack, held_ns):
    """held_ns: how long threads of the program had or wanted a CPU, in which one of them may have
    held the GIL."""
    label, (low, high) = LABELS[kind], profile.clipped(truth["intervals"])
    here = [s for s in profile.samples if s.tid == truth["tid"] and is_at(kind)(s)]
    assert here, "nothing at the line of %s" % kind
    got = sum(s.ns for s in here if s.labels["wait"] == label)
    # On the way back it may wait for the GIL, which is in its bracket, too: together they are what
    # the program measured, and nobody waits for the GIL while no thread has or wants a CPU.
    regained = sum(s.ns for s in here if s.labels["wait"] == "gil")
    both = got + regained
    waits.near(both, min(max(both, low), high), tolerance, kind, slack)
    assert regained <= min(
        held_ns, 0.2 * high), "%s: %.3f s for the GIL, which was held for %.3f s at most" % (
            kind, regained / SECOND, held_ns / SECOND)
    wanted = min(max(both, low), high)
    others = sum(s.ns for s in here if s.labels["wait"] not in BESIDE + (label,))
    assert others <= 0.01 * wanted, "%s: %.3f s of %.3f s have another label:%s" % (
        kind, others / SECOND, wanted / SECOND, harness.show(here))
    for s in here:
        assert s.labels["thread_name"] == "wait-" + kind and s.labels["comm"], s.labels
        assert harness.names(s)[-1].endswith("wait_" + kind), harness.text(s)
        kernel = harness.kernel_frames(s)
        # What was asleep before the start is read from outside, where schedule() is not in the
        # stack.
        assert s.labels["wait"] != label or "swept" in s.labels or (
            kernel and kernel[-1].name in ("__schedule", "schedule")), harness.text(s)
    return 2 * got / (low + high)


def test_reasons_to_wait():
    with harness.Target("waiters.py") as target:
        meter = waits.Meter(target.pid)
        profile, said = offcpu(target, harness.times(3, 5))
        meter.stop()
        target.stop()
        truth = target.read("waiters.json")
        # What the host takes while a thread computes in its bracket is no CPU time for its clock.
        cpu, delay, _, stolen = meter.between(profile.begin_ns, profile.end_ns)
        # Beyond the budget, which a busy host's machine reaches early, some waits stand for others.
        tolerance = 0.2 if lost(said, "waits_weighted") > 20 else 0.05
        print(
            {
                kind: round(
                    check_kind(profile, kind, truth[kind], tolerance, stolen if kind in BUSY else 0,
                               cpu + delay + stolen), 4) for kind in truth
            }, said)
        missing = set(LABELS) - set(truth) - {"fault"}
        assert not missing, missing
        harness.need("fault" in truth, "all but page faults: userfaultfd is not allowed here")
        harness.expect_whole(profile.samples)


def test_run_queue():
    with harness.Target("lives.py", "turns") as target:
        pids = target.read("turns.json")
        meters = [waits.Meter(pid, 0.02) for pid in pids]
        path = harness.profile(pids, duration=2.5, hz=None, options=["--events", "offcpu"]).out
        for meter in meters:
            meter.stop()
        for pid, meter in zip(pids, meters):
            profile = waits.Waits(path, pid, "off_cpu")
            _, wanted, _, _ = meter.between(profile.begin_ns, profile.end_ns)
            assert wanted > SECOND / 2, "they are not on one CPU"
            queue = [s for s in profile.samples if s.labels["wait"] == "run queue"]
            waits.near(sum(s.ns for s in queue), wanted, 0.05, "run queue")
            turns = sum(s.ns for s in queue if waits.leaf(s) and waits.leaf(s).name == "turns")
            assert turns > 0.9 * wanted, harness.show(queue)
            assert profile.ns() - wanted < 0.06 * wanted, profile.by_label("wait")


def test_stopped():
    with harness.light() as target:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), target.pid, None, 3,
                                ["--events", "offcpu"])
        harness.sampling(process)
        os.kill(target.pid, signal.SIGSTOP)
        begin = time.monotonic_ns()
        time.sleep(1.5)
        os.kill(target.pid, signal.SIGCONT)
        wanted = time.monotonic_ns() - begin
        run = harness.finish(process)
        assert run.rc == 0, run.err
        waits.near(
            waits.Waits(run.out, target.pid, "off_cpu").by_label("wait")["stopped"], wanted, 0.05,
            "stopped")


def test_a_directory_gets_all_kinds_and_they_add_up():
    """wall = cpu + offcpu = threads x time, and the ledger too."""
    with harness.Target("waiters.py", "spin") as target:
        meter, directory = waits.Meter(target.pid), harness.temporary()
        run = harness.profile(target.pid, out=directory, duration=4.5, hz=997,
                              options=["--interval", "2"])
        meter.stop()
        paths = {kind: waits.windows(directory, kind) for kind in ("cpu", "offcpu", "gil",
                                                                      "ledger")}
        # The last one may be shorter than the two seconds that times tell apart.
        assert not waits.windows(directory, "wall")
        paths = {kind: found[:2] for kind, found in paths.items()}
        paths["wall"] = [waits.made_wall(directory, path) for path in paths["cpu"]]
        counts = {kind: len(found) for kind, found in paths.items()}
        assert set(counts.values()) == {2}, counts
        all_ns = all_wanted = all_stolen = 0
        for number in range(counts["cpu"]):
            kinds = {kind: waits.Waits(paths[kind][number], target.pid, value) for kind, value in (
                ("cpu", "cpu"), ("offcpu", "off_cpu"), ("wall", "wall"))}
            waits.Waits(paths["gil"][number], target.pid, "gil_wait")
            wall = kinds["wall"]
            assert wall.ns() == kinds["cpu"].ns() + kinds["offcpu"].ns(), number
            _, _, threads, stolen = meter.between(wall.begin_ns, wall.end_ns)
            wanted = threads * (wall.end_ns - wall.begin_ns)
            line = waits.ledger(harness.load(paths["ledger"][number]), target.pid)
            # What a busy agent reads late of one window is in the next one.
            waits.near(wall.ns(), wanted, 0.3,
                       "wall of window %d: %s, %s" % (number, line, run.err), stolen)
            if wanted > 25 * SECOND:
                waits.check_ledger(line, wanted, 0.02)
            all_ns, all_wanted, all_stolen = all_ns + wall.ns(
            ), all_wanted + wanted, all_stolen + stolen
            assert line["threads"] == threads, (line, threads)
        # Beyond the budget some waits stand for others; no sample is taken while the host has the
        # CPU.
        waits.near(all_ns, all_wanted, 0.04 if "waits_weighted" in run.err else 0.01,
                   "wall: " + run.err, all_stolen)


def test_a_sleep_of_many_windows():
    with harness.Target("lives.py", "long") as target:
        directory = harness.temporary()
        process = harness.start(directory, target.pid, None, 7,
                                ["--events", "offcpu", "--interval", "1"])
        harness.sampling(process)
        time.sleep(1)
        open(target.path("go"), "w").close()
        run = harness.finish(process)
        assert run.rc == 0, run.err
        tid, seen = target.read("tid.json"), []
        for path, ledger in zip(waits.windows(directory, "offcpu"),
                                waits.windows(directory, "ledger")):
            profile = waits.Waits(path, target.pid, "off_cpu")
            length = profile.end_ns - profile.begin_ns
            seen.append(profile.ns(lambda s: s.tid == tid) / length)
            waits.check_ledger(waits.ledger(harness.load(ledger), target.pid), 2 * length,
                               0.05 if len(seen) == 1 else 0.01)
            if len(seen) > 3:
                asleep = profile.ns(lambda s: s.tid == tid and waits.leaf(s).name == "nap"
                                    and s.labels["wait"] == "sleep")
                waits.near(asleep, length, 0.002, "window %d" % len(seen))
        assert len(seen) >= 7 and min(seen) > 0.9, seen


def whole_life(mode, options=()):
    """(off-CPU profile of all of its life, directory of what it wrote, what pyprofd said)"""
    directory = harness.temporary()
    command = list(
        harness.interpreter().command) + [os.path.join(harness.TARGETS, "lives.py"), mode]
    run = harness.profile(None, hz=None, duration=None,
                          options=["--events", "offcpu"] + list(options), command=command,
                          env={"E2E_DIR": directory, "PYTHONDONTWRITEBYTECODE": "1"})
    return waits.Waits(run.out, None, "off_cpu"), directory, run.err


def napped(profile, name="nap"):
    """{tid: ns asleep in this function}"""
    found = {}
    for s in profile.samples:
        if s.labels["wait"] == "sleep" and waits.leaf(s) and waits.leaf(s).name == name:
            found[s.tid] = found.get(s.tid, 0) + s.ns
    return found


def lines_of(profile):
    """The ledger's lines, the fork of pyprofd that became the command left out: [(threads,
    line)]."""
    found = waits.ledgers(profile.profile)
    for line in found:
        waits.check_ledger(line, line["seconds"])
    pids = {s.pid for s in profile.samples}
    assert {line["pid"] for line in found} == pids and len(pids) == 1, (pids, found)
    assert all(line["seconds"] - line["run_queue"] < 0.3 * SECOND for line in found
               if line["comm"] == "pyprofd"), found
    return sorted((line["threads"], line) for line in found if line["comm"] != "pyprofd")


def test_exit_while_threads_sleep():
    profile, _, _ = whole_life("exits")
    asleep = napped(profile)
    assert len(asleep) == 4, asleep
    for ns in asleep.values():
        waits.near(ns, SECOND, 0.05, "asleep until the exit", 0.1 * SECOND)
    (threads, line), = lines_of(profile)
    assert threads == 5 and 5 * SECOND < line["seconds"] - line["run_queue"] < 5.5 * SECOND, line


def check_exec(mode):
    profile, _, _ = whole_life(mode)
    asleep = napped(profile)
    waits.near(sum(asleep.values()), SECOND, 0.05, "asleep until exec", 0.1 * SECOND)
    assert len(asleep) == 1, asleep
    (threads, line), = lines_of(profile)
    # Both programs have one name.  A thread that takes the first one's id with exec is counted
    # twice.
    assert threads in (1 + 2, 1 + 3), line
    waits.near(line["sleep"], 3 * SECOND, 0.05, "sleep before and after: %s" % line, 0.1 * SECOND)
    rest = line["seconds"] - line["sleep"] - line["run_queue"]
    assert rest < 0.6 * SECOND and line["cpu"] < 0.6 * SECOND, line


def test_exec_while_a_thread_sleeps():
    check_exec("execs")


def test_exec_by_another_thread():
    check_exec("thread_execs")


def test_only_the_command_is_in_its_ledger():
    profile, _, _ = whole_life("rest")
    lines_of(profile)


def test_a_thousand_short_threads():
    profile, directory, said = whole_life("churn")
    with open(os.path.join(directory, "churn.json"), encoding="utf-8") as file:
        truth = json.load(file)
    asleep = napped(profile)
    # New threads are new stacks: the budget leaves some to chance, and of 1,000 few stand for many
    # then.
    assert truth["count"] == 1000 and 50 < len(asleep) <= 1000, (len(asleep), truth)
    (threads, line), = lines_of(profile)
    assert threads in (1000, 1001), line
    assert 4.9 * SECOND <= line["sleep"] <= truth["asleep_ns"], (line, truth)
    waits.near(sum(asleep.values()), line["sleep"], 0.4 if "waits_weighted" in said else 0.03,
               "asleep")
    assert "threads_full" not in said, said


def built(source, *flags):
    harness.need(shutil.which("cc"), "no C compiler")
    program = os.path.join(harness.temporary(), os.path.basename(source)[:-2])
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, source] + list(flags), check=True)
    return program


def run_command(command, options=()):
    """(profile of all its life, what it printed, what pyprofd said)"""
    path = os.path.join(harness.temporary(), "printed")
    with open(path, "wb") as printed:
        run = harness.profile(None, hz=None, duration=None, command=command, stdout=printed,
                              options=["--events", "offcpu"] + list(options))
    with open(path, encoding="ascii") as printed:
        return waits.Waits(run.out, None, "off_cpu"), printed.read(), run.err


def lost(said, reason):
    match = re.search(r"([\d,]+) " + reason, said)
    return int(match.group(1).replace(",", "")) if match else 0


def test_ten_thousand_threads():
    count = 10000
    program = built(os.path.join(harness.TARGETS, "many_threads.c"), "-pthread")
    profile, printed, said = run_command([program, str(count)])
    truth = int(printed)
    lines = [x for x in waits.ledgers(profile.profile) if x["comm"] == "many_threads"]
    assert len(lines) == 1, (waits.ledgers(profile.profile), said)
    line = lines[0]
    waits.check_ledger(line, line["seconds"])
    waits.near(line["sleep"], truth, 0.05, "sleep of the ledger: " + said)
    assert 0 <= count + 1 - line["threads"] <= lost(said, "threads_full"), (line, said)
    assert float(re.search(r"memory ([\d.]+) MiB", said).group(1)) < 100, said
    asleep = profile.by_label("wait")["sleep"]
    if lost(said, "counts_full"):
        # Each thread has counters of its own, and the table is bounded; it is said how many went.
        assert 0.2 * truth < asleep < 1.05 * truth, (asleep, truth, said)
    else:
        waits.near(asleep, truth, 0.1, "asleep: " + said)


def test_200000_switches_a_second():
    """Beyond the budget waits stand for others; what a look costs must not be among what they stand
    for."""
    source = os.path.join(harness.TOP, "tests", "bench", "workloads", "switches.c")
    # Twice as many as a machine can.
    profile, _, said = run_command(list(harness.AHEAD) + [built(source), "paced", "800000", "1"])
    lines = [x for x in waits.ledgers(profile.profile) if x["comm"] == "switches"]
    assert len(lines) == 2, lines
    for line in lines:
        waits.check_ledger(line, profile.end_ns - profile.begin_ns, 0.05)
        mine = [s for s in profile.samples if s.pid == line["pid"]]
        by_wait = sum(s.ns for s in mine)
        waits.near(by_wait, line["net"] + line["run_queue"] + line["child"], 0.3,
                   "off the CPU: " + said)
        # Whether a reader blocks, or the writer is preempted by it, is the scheduler's choice;
        # together they are all.
        times = sum(s.count for s in mine if s.labels["wait"] in ("pipe", "run queue"))
        assert 200000 < times < 500000, times


def test_callers_change_where_a_thread_often_waits():
    """The place is known without a walk; its callers are seen again, each 20 to 100 ms.  The
    program ends just behind the edge of the first window, where its sums must still be that
    window's."""
    program = built(os.path.join(harness.TARGETS, "two_callers.c"), "-fno-optimize-sibling-calls")
    profile, printed, said = run_command([program, "1000", "3000"], ["--interval", "4"])
    truth = [int(ns) for ns in printed.split()]
    ns, spread = {"early": 0, "late": 0}, {"early": 0, "late": 0}
    for sample in profile.profile.samples:
        names = {frame.name for frame in sample.frames} & set(ns)
        if names and sample.labels["wait"] == "pipe":
            (name,), (value, _, effective) = names, sample.values
            ns[name] += value
            spread[name] += value ** 2 / effective
    share, wanted = ns["early"] / sum(ns.values()), truth[0] / sum(truth)
    error = math.sqrt((1 - share)**2 * spread["early"] + share**2 * spread["late"]) / sum(
        ns.values())
    print("early: %.3f, +- %.3f, by its own clock %.3f" % (share, error, wanted))
    assert 0 < error < 0.12, (error, ns, said)
    assert abs(share - wanted) < 4 * error, (share, error, wanted, ns, said)


def test_several_kinds_in_one_file_are_refused():
    run = harness.profile(None, hz=None, duration=1, options=["--events", "offcpu,gil"],
                          check=False)
    assert run.rc == 2 and "give a directory" in run.err and not os.path.exists(run.out), run.err


def test_short_waits_can_be_left_out():
    with harness.Target("waiters.py") as target:
        profile, _ = offcpu(target, 2, ["--set", "capture.offcpu-min=80000"])
        by_thread = profile.by_label("thread_name")
        assert by_thread["wait-child"] > 1.2 * SECOND, by_thread
        assert by_thread.get("wait-pipe", 0) < 0.5 * SECOND, by_thread  # 20 ms each
        line = waits.ledger(profile.profile, target.pid)
        assert line["net"] > 5 * SECOND, line


def test_cpu_of_the_ledger():
    """Beside the scheduler's own clock; what the host takes from the machine is in ours, but not in
    its."""
    with harness.light() as target:
        meter = waits.Meter(target.pid)
        profile, _ = offcpu(target, 3)
        meter.stop()
        cpu, _, _, stolen = meter.between(profile.begin_ns, profile.end_ns)
        line = waits.ledger(profile.profile, target.pid)
        waits.near(line["cpu"], cpu, 0.01, "CPU of the ledger", 20 * MS + stolen)
        # It may have waited for a CPU when the profile began: up to its first turn nobody knows it.
        waits.check_ledger(line, profile.end_ns - profile.begin_ns, 0.05)


# These compare the program's own clocks, or the scheduler's of its threads, with what pyprofd has
# of the same time: other programs beside them change both.
for test in (test_run_queue, test_stopped, test_a_directory_gets_all_kinds_and_they_add_up,
             test_a_sleep_of_many_windows, test_several_kinds_in_one_file_are_refused,
             test_short_waits_can_be_left_out, test_cpu_of_the_ledger):
    test.alone = False
for test in (test_reasons_to_wait, test_exit_while_threads_sleep, test_exec_while_a_thread_sleeps,
             test_exec_by_another_thread, test_only_the_command_is_in_its_ledger):
    test.alone = "sleepers"
for test in (test_a_thousand_short_threads, test_ten_thousand_threads,
             test_callers_change_where_a_thread_often_waits):
    test.alone = "one a CPU"
