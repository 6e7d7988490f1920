# SPDX-License-Identifier: BSD-2-Clause
"""--events wakers: the stack of the thread that ended a wait, above that of the one that waited."""
import glob
import os

import harness

SEPARATOR = "--waker--"


def parts(sample):
    """Frames of the waiter, root first, and of the waker, from the wake-up to its root."""
    names = [f.name for f in sample.frames]
    assert names.count(SEPARATOR) == 1, harness.text(sample)
    at = names.index(SEPARATOR)
    return names[:at], names[at + 1:]


def of(loaded, tid, wait):
    found = [s for s in loaded if s.tid == tid and s.labels.get("wait") == wait]
    assert found, "no %s of thread %d" % (wait, tid)
    return found


def ns_share(samples, condition):
    return sum(s.count for s in samples if condition(s)) / sum(s.count for s in samples)


def check(loaded, target):
    tids = target.read("tids.json")
    locks = of(loaded, tids["the-waiter"], "lock")

    def by_main(sample):
        waiter, waker = parts(sample)
        plain = [harness.plain(name) for name in waker]
        return (any(harness.plain(n) == "wait_lock" for n in waiter) and "release" in plain
                and plain.index("try_to_wake_up") == 0
                and plain.index("release") < plain.index("main")
                and sample.labels["waker_tid"] == target.pid
                and sample.labels["waker_pid"] == target.pid
                and sample.labels["waker_comm"].startswith("python"))

    assert ns_share(locks, by_main) > 0.9, harness.show(locks)
    sleeps = of(loaded, tids["the-sleeper"], "sleep")
    assert ns_share(sleeps, lambda s: s.labels.get("waker_comm") == "[interrupt]"
                    and parts(s)[1][-1] == "[interrupt]") > 0.9, harness.show(sleeps)
    assert not [s for s in loaded if s.labels.get("wait") == "run queue"]


def test_one_file():
    with harness.Target("lanes.py") as target:
        run = harness.profile(target.pid, duration=3, options=["--events", "wakers"])
        check(harness.samples(run.out, pid=target.pid), target)


# The directory has the same, and more.
test_one_file.few = False


def test_directory_has_both():
    with harness.Target("lanes.py") as target:
        directory = harness.temporary() + "/"
        run = harness.profile(target.pid, duration=3, out=directory, options=["--events", "wakers"])
        waker, offcpu = (glob.glob(os.path.join(directory, "*", "*", "*-%s.pb.gz" % kind))
                         for kind in ("waker", "offcpu"))
        assert len(waker) == len(offcpu) == 1, (waker, offcpu)
        loaded = harness.samples(waker[0], pid=target.pid)
        check(loaded, target)
        tid = target.read("tids.json")["the-waiter"]
        ended = sum(s.count for s in of(loaded, tid, "lock"))
        waited = sum(s.count for s in of(harness.samples(offcpu[0], pid=target.pid), tid, "lock"))
        # The wait that goes on at the end has no waker yet.  Where walks took more than their
        # budget, few of them stand for the others, in each of the two profiles by chance.
        low, high = (0.4, 1.8) if "weighted" in run.err else (0.7, 1.1)
        assert low * waited < ended < high * waited, "%d of %d ns have a waker: %s" % (
            ended, waited, run.err)
