# SPDX-License-Identifier: BSD-2-Clause
"""Label `gpu`, wait=gpu and the ledger's part: whether a process has work queued on the GPU, as its
calls prove it, against what the stand-in of libcuda knows itself."""
import os
import re
import signal
import time

import harness
import test_probes
import waits

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
EVENTS = ["--events", "cpu,offcpu,gil,cuda"]
HZ = 499
SITES = 100  # places with probes: ends of calls, some 50, come first


class Seen:
    """What a run into a directory has of a program of gpu_states.py."""

    def __init__(self, mode, events=EVENTS, python=None):
        fakes = harness.need_fakes()
        test_probes.need_links()
        with harness.Target("gpu_states.py", mode, python=python, env={"FAKES": fakes}) as target:
            out = harness.temporary()
            process = harness.start(out, target.pid, hz=HZ, options=events)
            test_probes.await_sites(process, SITES)
            open(target.path("go"), "w").close()
            target.wait("done", 60)
            self.truth = target.read("truth.json")
            run = harness.finish(process, signal_number=signal.SIGINT)
        assert run.rc == 0, run.err
        self.said, self.out = run.err, out

    def windows(self, kind):
        return [harness.load(path) for path in waits.windows(self.out, kind)]

    def ns(self, kind, label="gpu", function=None, value=-1, queue=True):
        """value of the label -> ns, of samples with this function among their frames; queue: with
        the time on the run queue"""
        found = {}
        for profile in self.windows(kind):
            for sample in profile.samples:
                if not queue and sample.labels.get("wait") == "run queue":
                    continue
                if function and not any(f.name == function for f in sample.frames):
                    continue
                key = sample.labels.get(label, "")
                found[key] = found.get(key, 0) + sample.values[value]
        return found

    def state_s(self):
        """state -> seconds, of kind gpu"""
        ns = self.ns("gpu", value=0)
        return {name: ns.get(name, 0) / 1e9 for name in ("queued", "drained", "unknown")}

    def ledger_s(self, name):
        return sum(line.get(name, 0) for profile in self.windows("ledger")
                   for line in waits.ledgers(profile)) / 1e9

    def proven_s(self):
        assert all(end for _, end in self.truth["proven"]), self.truth["proven"]
        return sum(end - begin for begin, end in self.truth["proven"]) / 1e9

    def near_waits(self, function):
        """What the library says of its own waits is what stacks have below this function.  Where
        others have the CPU, some of it is on the run queue, and some of that is the caller's.  The
        ledger has the same."""
        known = sum(row["wait_ns"] for row in self.truth["api"].values()) / 1e9
        off = self.ns("offcpu", "wait", function, 0)
        gpu, queue = off.get("gpu", 0) / 1e9, off.get("run queue", 0) / 1e9
        spun = sum(self.ns("cpu", function=function).values()) / 1e9
        print("lost in waits: %.3f s; off the CPU %.3f, on it %.3f, run queue %.3f: %+.2f %%"
              % (known, gpu, spun, queue, 100 * ((gpu + queue + spun) / known - 1)))
        # Samples have an error of their own.
        slack = 0.02 * known + 0.05 * spun
        assert gpu + spun - slack < known < gpu + queue + spun + slack, (known, off, spun)
        assert abs(self.ledger_s("gpu") - gpu) < 0.01 * known + 0.001, self.ledger_s("gpu")
        return gpu, spun


def only(found, *values, error=0.02):
    """All but a small part has one of these values."""
    total = sum(found.values())
    assert total and sum(found.get(v, 0) for v in values) >= (1 - error) * total, found


# ---------------------------------------------------------------- against the truth

def near_truth(seen):
    """Drained for as long as the library knows, to 1 ms an interval, and lost in waits to 2 %."""
    proven, drained = seen.proven_s(), seen.state_s()["drained"]
    intervals = len(seen.truth["proven"])
    # It counts a moment later than the first synchronisation returned.
    proven += seen.truth["before_ns"] / 1e9
    off_ms = 1e3 * (drained - proven) / intervals
    # A thread that has to wait for a CPU inside of a call is known to be in it for longer.
    queue_ms = seen.ns("offcpu", "wait", value=0).get("run queue", 0) / 1e6
    print("drained: %.6f s, %d intervals, %+.3f ms each; run queue %.3f ms each"
          % (drained, intervals, off_ms, queue_ms / intervals))
    assert -1 - queue_ms / intervals < off_ms < 1, (drained, proven, seen.said)


def check_reader(out):
    """It selects by the label, and groups by it."""
    report = harness.subprocess.run(
        [PYPROF, "report", out, "--kind", "cpu", "--by", "label:gpu"], check=True,
        stdout=harness.subprocess.PIPE).stdout.decode()
    assert re.search(r"gpu drained", report) and re.search(r"gpu queued", report), report
    harness.subprocess.run([PYPROF, "flame", out, "--kind", "cpu", "--label", "gpu=drained"],
                           check=True, stdout=harness.subprocess.DEVNULL)
    tree = harness.subprocess.run(
        [PYPROF, "tree", out, "--kind", "cpu", "--label", "gpu=drained"], check=True,
        stdout=harness.subprocess.PIPE).stdout.decode()
    assert "busy_drained" in tree and "busy_queued" not in tree, tree


def test_python_that_runs_while_nothing_is_queued_is_drained():
    seen = Seen("rounds")
    only(seen.ns("cpu", function="busy_drained"), "drained")
    only(seen.ns("cpu", function="busy_queued"), "queued")
    near_truth(seen)
    gpu, spun = seen.near_waits("Cuda.synchronize")
    assert gpu > 10 * spun, (gpu, spun)
    only(seen.ns("offcpu", function="Cuda.synchronize", value=0, queue=False), "wait")
    assert "GPU wait" in seen.said, seen.said
    check_reader(seen.out)


def test_a_thread_that_spins_for_the_gpu_waits_on_the_cpu():
    seen = Seen("spinning")
    only(seen.ns("cpu", function="Cuda.synchronize"), "wait", error=0.05)
    only(seen.ns("cpu", function="busy_drained"), "drained")
    near_truth(seen)
    gpu, spun = seen.near_waits("Cuda.synchronize")
    assert spun > 10 * gpu, (gpu, spun)


def test_several_streams_must_all_be_empty():
    seen = Seen("several")
    near_truth(seen)
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.05)


def test_nothing_is_drained_while_other_threads_launch():
    seen = Seen("race")
    proven, drained = seen.proven_s(), seen.state_s().get("drained", 0)
    print("drained %.4f s of %.4f s" % (drained, proven))
    # Where a thread may be inside of a launch, nothing is said.
    assert 0.2 * proven < drained < proven + 0.001, (drained, proven)


# ---------------------------------------------------------------- what proves nothing

def test_sync_copies_wait_and_leave_nothing_but_those_to_the_device():
    seen = Seen("copies")
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued")
    only(seen.ns("offcpu", function="Cuda.copy", value=0, queue=False), "wait", error=0.05)
    gpu = seen.ns("offcpu", "wait", function="Cuda.copy", value=0)["gpu"]
    assert gpu > 30 * 0.02e9, gpu


def test_what_was_queued_before_is_not_known_without_a_contexts_synchronisation():
    seen = Seen("unknown")
    only(seen.ns("cpu", function="busy_drained"), "", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.1)
    assert seen.state_s()["drained"] == 0, seen.state_s()


def test_an_events_synchronisation_proves_nothing():
    seen = Seen("events")
    only(seen.ns("cpu", function="busy_queued"), "queued")
    assert seen.state_s()["drained"] < 0.1, seen.state_s()  # before the first launch
    seen.near_waits("Cuda.call")


def test_a_synchronisation_that_fails_proves_nothing():
    seen = Seen("errors")
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.05)


def test_a_context_says_nothing_of_another_one():
    seen = Seen("contexts")
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.05)
    near_truth(seen)


def test_a_destroyed_stream_still_has_its_work():
    seen = Seen("destroyed")
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.05)
    near_truth(seen)


def test_a_captured_launch_queues_nothing():
    seen = Seen("captured")
    only(seen.ns("cpu", function="busy_drained"), "drained", error=0.05)
    only(seen.ns("cpu", function="busy_queued"), "queued", error=0.05)
    near_truth(seen)


def test_nothing_is_told_while_launches_are_not_probed():
    seen = Seen("many", events=EVENTS + ["--max-slowdown", "0.1%"])
    states, labels = seen.state_s(), seen.ns("cpu", function="busy_drained")
    # On for a part of each 4 s, and until what is saved for ten seconds is used up.
    assert states["unknown"] > 0.5 and 0.02 < states["drained"] < 4, (states, seen.said)
    only(labels, "", "drained")
    assert labels[""] > 0.1 * sum(labels.values()), labels


# ---------------------------------------------------------------- where there is none

def test_programs_without_cuda_have_no_label():
    fakes = harness.need_fakes()
    test_probes.need_links()
    with harness.Target("gpu_states.py", "rounds", env={"FAKES": fakes}) as target, \
            harness.light() as other:
        out = harness.temporary()
        process = harness.start(out, os.getpid(), hz=HZ, options=EVENTS)  # and its children
        test_probes.await_sites(process, SITES)
        open(target.path("go"), "w").close()
        target.wait("done", 60)
        run = harness.finish(process, signal_number=signal.SIGINT)
        assert run.rc == 0, run.err
        labels = {target.pid: set(), other.pid: set(), os.getpid(): set()}
        for kind in ("cpu", "offcpu"):
            for path in waits.windows(out, kind):
                for sample in harness.load(path).samples:
                    if sample.labels["pid"] in labels:
                        labels[sample.labels["pid"]].add(sample.labels.get("gpu", ""))
        assert {"queued", "drained", "wait"} <= labels.pop(target.pid), labels
        assert all(found == {""} for found in labels.values()), labels


def test_of_a_process_that_begins_with_probes_in_place_all_streams_are_known():
    fakes = harness.need_fakes()
    test_probes.need_links()
    with harness.Target("gpu_states.py", "unknown", env={"FAKES": fakes}):
        out = harness.temporary()
        process = harness.start(out, None, hz=HZ, options=EVENTS)
        test_probes.await_sites(process, SITES)
        time.sleep(1)
        with harness.Target("gpu_states.py", "whole", env={"FAKES": fakes}) as target:
            time.sleep(2)  # until pyprofd has looked at it; it has queued work before that
            open(target.path("go"), "w").close()
            target.wait("done", 60)
            run = harness.finish(process, signal_number=signal.SIGINT)
            assert run.rc == 0, run.err
        found = {}
        for path in waits.windows(out, "cpu"):
            for sample in harness.load(path).samples:
                if sample.labels["pid"] == target.pid and any(
                        f.name == "busy_drained" for f in sample.frames):
                    key = sample.labels.get("gpu", "")
                    found[key] = found.get(key, 0) + sample.values[0]
        only(found, "drained", error=0.05)


for test in (test_python_that_runs_while_nothing_is_queued_is_drained,
             test_a_thread_that_spins_for_the_gpu_waits_on_the_cpu,
             test_several_streams_must_all_be_empty,
             test_nothing_is_drained_while_other_threads_launch,
             test_nothing_is_told_while_launches_are_not_probed):
    test.alone = "one a CPU"
