# SPDX-License-Identifier: BSD-2-Clause
"""Kind mem beside a program that knows what memory it touches, and what the kernel says of it."""
import os
import signal

import harness
import waits

MB = 1 << 20


class Touched:
    """A profile of kind mem: bytes by line of targets/touches.py and by function."""

    def __init__(self, path, pid, value):
        self.profile = waits.Waits(path, pid, value)

    def bytes(self, condition=lambda s: True):
        return self.profile.ns(condition)

    def at(self, mark):
        line = waits.mark_line("touches.py", mark)
        return self.bytes(lambda s: any(
            f.line == line and os.path.basename(f.file) == "touches.py"
            for f in harness.python_frames(s)))

    def inside(self, function):
        return self.bytes(lambda s: harness.holds(s, function))

    def of(self, memory, function):
        return self.bytes(
            lambda s: s.labels.get("memory") == memory and harness.holds(s, function))


def near(got, wanted, tolerance, what, unit=MB):
    text = "%s: %.3f, wanted %.3f (%.2f %% off)" % (what, got / unit, wanted / unit,
                                                    100 * (got / wanted - 1))
    assert abs(got - wanted) <= tolerance * wanted, text
    print(text)


def run(of_pid):
    # What else runs on the machine, other tests and builds, takes of the budget of walks.
    budget = [] if of_pid else ["--max-cpu", 40 * os.cpu_count(), "--duration", 120]
    with harness.Target("touches.py") as target:
        process = harness.start(os.path.join(harness.temporary(), "mem.pb.gz"),
                                target.pid if of_pid else None, None,
                                options=["--events", "mem"] + budget)
        harness.sampling(process)
        open(target.path("go"), "w").close()
        target.wait("truth.json")
        done = harness.finish(process, signal_number=signal.SIGINT)
        assert done.rc == 0, done.err
        assert "pages_unknown" not in done.err, done.err
        return target.pid, done.out, target.read("truth.json"), target.read("copied.json")


def test_lines_and_sums(of_pid):
    pid, path, truth, copied = run(of_pid)
    touch, copy = Touched(path, pid, "first_touch"), Touched(path, pid, "cow")
    ways = {"pages": ("anon", "anonymous"), "zero_pages": ("anon", "anonymous"),
            "read": ("anon", "anonymous"), "shared": ("shmem", "shared"),
            "private_file": ("anon", "file"), "objects": ("anon", "heap")}
    if truth["huge_pages"]["anon"] >= 128 * MB:
        ways["huge_pages"] = ("anon", "anonymous")
    for way, (kind, memory) in ways.items():
        near(touch.at(way), truth[way][kind], 0.03, way)
        assert touch.of(memory, way) >= 0.97 * touch.inside(way), (
            way, touch.profile.by_label("memory", lambda s, w=way: harness.holds(s, w)))
    # The buffer is a MiB; what the two files have in the page cache is 112 times that.
    assert touch.inside("page_cache") < 2 * MB, touch.inside("page_cache")
    near(touch.bytes(), truth["all"]["anon"] + truth["all"]["shmem"], 0.05, "all")
    # The parent has copied hardly anything: its child ends before it writes again.
    assert copy.bytes() < 2 * MB, copy.bytes()
    child = Touched(path, copied["pid"], "cow")
    near(child.inside("children"), copied["bytes"], 0.05, "copied by a child that reads")
    # A page is 4 KiB, or 2 MiB.
    faults = Touched(path, pid, "faults")
    near(faults.inside("pages"), truth["pages"]["anon"] / 4096, 0.03, "faults", 1)
    if "huge_pages" in ways:
        near(faults.at("huge_pages"), truth["huge_pages"]["anon"] / (2 * MB), 0.15, "huge faults",
             1)


test_lines_and_sums.cases = lambda: [("pid", True), ("machine", False)]
test_lines_and_sums.alone = "one a CPU"
