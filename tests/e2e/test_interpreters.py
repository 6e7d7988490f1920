# SPDX-License-Identifier: BSD-2-Clause
"""Every installed CPython: names, order and lines of all frames, compared with the interpreter's
own."""
import collections
import os
import shutil
import subprocess

import harness
from harness import need

MINIMUM_VERSIONS = 5


def everyone():
    return [(i.label, i) for i in harness.interpreters()]


OURS = ("zoo.py", "zoo_unicode.py", "<string>")


def problems_of(sample, truth):
    """None, or what is wrong with this sample's Python frames."""
    frames = [(f.name, os.path.basename(f.file), f.line) for f in harness.python_frames(sample)]
    if not frames:
        return None
    callers, (name, file, line) = frames[:-1], frames[-1]
    if file not in OURS:
        return None  # the library's own calls are not noted
    chain = tuple(callers) + ((name, file, 0),)
    if chain not in truth.chains:
        if tuple(f[:2] for f in chain) not in truth.names:
            return "no such chain"
        return "a caller's line is wrong"
    if (name, file) in truth.lines and line not in truth.lines[name, file]:
        return "line %s is not one of %s" % (line, sorted(truth.lines[name, file]))
    return None


Truth = collections.namedtuple("Truth", "chains names lines functions")


def read_truth(target):
    raw = target.read("truth.json")
    chains = {tuple((n, os.path.basename(f), line) for n, f, line in c) for c in raw["chains"]}
    lines = collections.defaultdict(set)
    for name, file, _, found in raw["codes"]:
        lines[name, os.path.basename(file)].update(found)
    return Truth(chains, {tuple(f[:2] for f in c) for c in chains}, lines,
                 {c[-1][0] for c in chains})


def check_zoo(target, samples, minimum=120):
    truth = read_truth(target)
    assert harness.total(samples) >= minimum, "only %d samples" % harness.total(samples)
    harness.expect_whole(samples)
    harness.expect_share(samples, lambda s: bool(harness.names(s)), 0.98, "Python frames")
    wrong = collections.Counter()
    example = {}
    for sample in samples:
        problem = problems_of(sample, truth)
        if problem:
            wrong[problem] += sample.count
            example.setdefault(problem, sample)
    # 0.3 %: a sample between two instructions of a call may see a frame half made.
    assert sum(wrong.values()) <= 0.003 * harness.total(samples), "\n".join(
        "%d of %d samples: %s: %s" % (count, harness.total(samples), problem,
                                      harness.text(example[problem]))
        for problem, count in wrong.most_common(5))
    seen = {name for s in samples for name in harness.names(s)}
    missing = {n for n in truth.functions if n not in seen and harness.plain(n) != "record"}
    assert len(missing) <= 0.1 * len(truth.functions), "never seen: %s" % sorted(missing)
    harness.expect_share([s for s in samples if harness.names(s)], harness.is_python_rooted, 0.99,
                         "Python root")


def test_frames(interpreter):
    with harness.Target("zoo.py", python=interpreter) as target:
        run = harness.profile_work(target.pid, 0.7)
    samples = harness.samples(run.out, pid=target.pid)
    check_zoo(target, samples)
    version = "%d.%d" % interpreter.version
    harness.expect_share(
        samples, lambda s: str(s.labels.get("python_version", "")).startswith(version), 0.97,
        "label python_version %s" % version)


test_frames.cases = everyone
test_frames.few = harness.each_version


def test_five_minor_versions_ran():
    versions = {i.version for i in harness.interpreters()}
    assert len(versions) >= MINIMUM_VERSIONS, "only %s" % sorted(versions)


def test_all_at_once_system_wide(several):
    """One run over several interpreters together: none is taken for another."""
    targets = [harness.Target("zoo.py", python=i, ready=False) for _, i in several]
    try:
        for target in targets:
            target.wait("ready", 100)
        run = harness.profile(hz=499, duration=2)
    finally:
        for target in targets:
            target.ask_to_stop()
        for target in targets:
            target.stop()
    for target in targets:
        samples = harness.samples(run.out, pid=target.pid)
        assert harness.total(samples) > 40, "%s: %d samples" % (
            target.python.label, harness.total(samples))
        truth = read_truth(target)
        bad = [s for s in samples if problems_of(s, truth)]
        assert harness.total(bad) <= 0.01 * harness.total(samples), "%s:%s" % (
            target.python.label, harness.show(bad))
        harness.expect_share(samples, lambda s: bool(harness.names(s)), 0.95,
                             target.python.label + ": Python frames")


test_all_at_once_system_wide.cases = lambda: [("each version", harness.each_version(everyone())),
                                              ("all", everyone())]
test_all_at_once_system_wide.few = lambda every: every[:1]
test_all_at_once_system_wide.alone = True
test_all_at_once_system_wide.limit_s = 180


def with_trampolines():
    return [(i.label, i) for i in harness.interpreters() if i.version >= (3, 12) and subprocess.run(
        i.command +
        ["-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"],
        stderr=subprocess.DEVNULL, check=False).returncode == 0]


def test_perf_trampolines(python):
    """-X perf puts native code without unwind rows between all Python frames."""
    with harness.Target("zoo.py", python=python, options=["-X", "perf"]) as target:
        out = harness.profile_work(target.pid, 0.7).out
    samples = harness.samples(out, pid=target.pid)
    truth = read_truth(target)
    bad = [s for s in samples if problems_of(s, truth)]
    assert harness.total(bad) <= 0.01 * harness.total(samples), harness.show(bad)
    harness.expect_share(samples, harness.is_python_rooted, 0.97, "root")
    harness.expect_share(samples, harness.is_rooted, 0.95, "native root")


test_perf_trampolines.cases = with_trampolines
test_perf_trampolines.few = harness.ends


def test_perf_trampolines_are_at_hand():
    need(with_trampolines(), "no CPython 3.12 or later that takes -X perf")


def copied_interpreter(python, directory):
    """A copy that can be deleted while it runs: (command, environment, files to delete)."""
    libraries = subprocess.run(["ldd", python.command[0]], stdout=subprocess.PIPE, check=True)
    files = [python.command[0]] + [
        w for w in libraries.stdout.decode().split() if "/libpython" in w and os.path.exists(w)]
    copies = []
    for file in files:
        copy = os.path.join(directory, os.path.basename(file))
        shutil.copy(os.path.realpath(file), copy)
        copies.append(copy)
    home = os.path.dirname(os.path.dirname(os.path.realpath(python.command[0])))
    return copies, {"LD_LIBRARY_PATH": directory, "PYTHONHOME": home}


def deleted(python, make_replacement):
    copies, env = copied_interpreter(python, harness.temporary())
    moved = python._replace(command=[copies[0]])
    with harness.Target("zoo.py", python=moved, env=env) as target:
        for copy in copies:
            os.unlink(copy)
            if make_replacement:
                with open(copy, "wb") as file:
                    file.write(b"another file of the same name")
        out = harness.profile_work(target.pid, 0.7).out
    check_zoo(target, harness.samples(out, pid=target.pid))


def plain_interpreters():
    """A shared and a static one, so that both the program and a library are deleted."""
    here = [i for i in harness.interpreters() if not i.root]
    chosen = [i for i in here if i.version in ((3, 11), (3, 12), (3, 8))]
    return [(i.label, i) for i in (chosen or here[-1:])]


def test_deleted_files(interpreter):
    deleted(interpreter, False)


test_deleted_files.cases = plain_interpreters
test_deleted_files.few = harness.ends


def test_replaced_files(interpreter):
    deleted(interpreter, True)


test_replaced_files.cases = plain_interpreters
test_replaced_files.few = harness.newest
