# SPDX-License-Identifier: BSD-2-Clause
"""Kernel, native and Python frames of one stack, and the flags that leave some of them out."""
import subprocess

import harness
import waits


def kernel_target():
    return harness.Target("burn.py", 0, "kernel")


def test_kernel_below_native_below_python():
    with kernel_target() as target:
        samples = harness.samples(harness.profile_work(target.pid, 0.5).out, pid=target.pid)
        kernel = [s for s in samples if harness.kernel_frames(s)]
        assert harness.total(kernel) >= 0.6 * harness.total(samples), harness.show(samples)
        harness.expect_whole(samples)
        order = {"python": 0, "native": 1, "kernel": 2}
        for s in kernel:
            kinds = [f.kind for f in s.frames]
            first = kinds.index("kernel")
            assert set(kinds[first:]) == {"kernel"}, "frames below the kernel's: " + harness.text(s)
            assert set(kinds) <= set(order), kinds
        reading = [s for s in kernel if harness.holds(s, "burn_kernel")]
        assert harness.total(reading) >= 0.9 * harness.total(kernel)
        harness.expect_share(
            reading, lambda s: any(
                f.name.startswith(
                    ("read", "__read", "__libc_read", "__GI___read")) or "libc" in f.module
                for f in harness.native_frames(s)), 0.9,
            "libc's read between Python and the kernel")


def test_no_kernel_and_no_native():
    with kernel_target() as target:
        samples = harness.samples(
            harness.profile_work(target.pid, 0.3, options=["--frames", "python,native"]).out,
            pid=target.pid)
        assert harness.total(samples) > 100
        assert not [s for s in samples if harness.kernel_frames(s)]
        harness.expect_whole(samples)
        samples = harness.samples(
            harness.profile_work(target.pid, 0.3, options=["--frames", "python,kernel"]).out,
            pid=target.pid)
        assert harness.total(samples) > 100
        found = [s for s in samples if harness.native_frames(s) and harness.names(s)]
        assert not found, harness.show(found)
        harness.expect_share(samples, harness.is_python_rooted, 0.98, "Python root")


def is_eval(frame):
    return "EvalFrame" in frame.name or "PyEval_Vector" in frame.name


def test_raw_keeps_the_interpreters_own_frames():
    with harness.Target("burn.py", 0) as target:
        folded = harness.samples(harness.profile_work(target.pid, 0.3).out, pid=target.pid)
        raw = harness.samples(
            harness.profile_work(target.pid, 0.3, options=[
                "--frames", "python,native,kernel,interpreter"]).out, pid=target.pid)
        harness.expect_share(raw, lambda s: any(is_eval(f) for f in s.frames), 0.9,
                             "eval frames with interpreter")
        harness.expect_share(folded, lambda s: any(is_eval(f) for f in s.frames), 0.0,
                             "eval frames without interpreter", high=0.01)
        harness.expect_whole(raw)


PROGRAM = """
#include <stdlib.h>
static volatile unsigned long total;
__attribute__((noinline)) void leaf(void) { for (int i = 0; i < 100000; i++) total += i; }
__attribute__((noinline)) int compare(const void *a, const void *b)
{ leaf(); total++; return a < b; }
__attribute__((noinline)) void recurse(int depth)
{
	int numbers[2] = {1, 2};

	if (depth)
		recurse(depth - 1);
	else
		qsort(numbers, 2, sizeof(int), compare);
	total++;
}
int main(void) { for (;;) recurse(20); }
"""


def test_a_program_without_python():
    """No frame pointers, through libc and back, 21 recursions."""
    directory = harness.temporary()
    compiler = harness.shutil.which("gcc") or harness.shutil.which("cc")
    harness.need(compiler, "no C compiler")
    with open(directory + "/plain.c", "w", encoding="ascii") as file:
        file.write(PROGRAM)
    subprocess.run([compiler, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o",
                    directory + "/plain", directory + "/plain.c"], check=True)
    process = subprocess.Popen([directory + "/plain"])
    try:
        samples = harness.samples(harness.profile_work(process.pid, 0.5).out, pid=process.pid)
        assert harness.total(samples) > 100
        assert not [s for s in samples if harness.names(s)]
        harness.expect_whole(samples)
        leaves = [s for s in samples if s.frames[-1].name == "leaf"]
        assert harness.total(leaves) > 0.8 * harness.total(samples), harness.show(samples)
        harness.expect_share(
            leaves, lambda s: [
                f.name for f in s.frames if f.name in ("main", "recurse", "compare", "leaf")
            ] == ["main"] + 21 * ["recurse"] + ["compare", "leaf"], 0.98,
            "main, 21 x recurse, compare, leaf")
        harness.expect_share(leaves, lambda s: any("libc" in f.module for f in s.frames[5:-2]),
                             0.98, "qsort between recurse and compare")
    finally:
        process.kill()
        process.wait()


def test_labels():
    with harness.Target("burn.py", 0, "python", "a-new-name") as target:
        sample = max(harness.samples(harness.profile_work(target.pid, 0.1).out, pid=target.pid),
                     key=lambda s: s.count)
        labels = sample.labels
        assert labels["pid"] == target.pid and labels["tid"] == target.pid, labels
        assert labels["ppid"] == harness.os.getpid(), labels
        assert labels["comm"] == "a-new-name", labels
        assert labels["python_version"].startswith("%d.%d" % target.python.version), labels


def test_profile_header():
    with harness.light() as target:
        before = harness.time.time()
        out = harness.profile(target.pid, hz=100, duration=1).out
        profile = harness.load(out)
        assert profile.period == 10_000_000, profile.period
        assert 0.95e9 < profile.duration_ns < 1.5e9, profile.duration_ns
        assert before - 1 < profile.time_ns / 1e9 < before + 10, profile.time_ns
        assert profile.comments, "no comment"
        assert [tuple(t) for t in profile.sample_types] == [("samples", "count"),
                                                            ("cpu", "nanoseconds")]


def newer():
    chosen = {}
    for i in harness.interpreters():
        if i.version >= (3, 10):
            chosen[i.version] = i
    return [("%d.%d" % v, i) for v, i in sorted(chosen.items())]


def test_code_without_information_in_every_sample(python):
    """No walk goes well by itself: where the eval loop's frame lies is found by the agent."""
    with harness.Target("jit.py", python=python, wrap=harness.AHEAD) as target:
        meter = waits.Meter(target.pid)
        run = harness.profile(target.pid, hz=999, duration=1)
        meter.stop()
    samples = harness.samples(run.out, pid=target.pid)
    spun = [s for s in samples if harness.holds(s, "jit_outer", "jit_caller")]
    profile = harness.load(run.out)
    due = 999 * meter.between(profile.time_ns,
                              profile.time_ns + profile.duration_ns)[0] / waits.SECOND
    assert harness.total(samples) > max(0.9 * due - 20,
                                        50), "%d of %d samples" % (harness.total(samples), due)
    assert harness.total(spun) > 0.9 * harness.total(samples), python.label + harness.show(samples)
    harness.expect_share(spun, harness.is_rooted, 0.9, "native root, " + python.label)
    harness.expect_share(
        spun, lambda s: harness.names(s)[-4:] == [
            "main", "jit_outer", "jit_outer.<locals>.<lambda>"
            if python.version >= (3, 11) else "<lambda>", "jit_caller"
        ], 0.97, "Python frames, " + python.label)


test_code_without_information_in_every_sample.cases = newer
test_code_without_information_in_every_sample.few = harness.ends
