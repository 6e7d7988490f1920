# SPDX-License-Identifier: BSD-2-Clause
"""Events gc and import beside gc.callbacks and -X importtime, for each Debian interpreter."""
import collections
import os
import re
import signal
import subprocess

import harness
import test_probes


def debians():
    """Debian's interpreters, which have probes."""
    fit = [i for i in harness.interpreters() if i.label.startswith("debian-")]
    if not any(i.version == (3, 11) for i in fit) and os.path.exists(test_probes.PYTHON):
        fit.append(harness.Interpreter("system-3.11", [test_probes.PYTHON], (3, 11), ""))
    return [i for i in fit if i.version >= (3, 9)]


def everyone():
    found = [(i.label, i) for i in debians()]
    return found or [("none", None)]


def need_probes(python):
    harness.need(python, "no Debian interpreter at hand: tests/interpreters/fetch.sh")
    test_probes.need_links()


def test_first_events_of_a_command():
    """It has its links before it begins, and one of each: nothing is missing, nothing counts
    twice."""
    harness.need(os.path.exists(test_probes.PYTHON), "no " + test_probes.PYTHON)
    test_probes.need_links()
    out = os.path.join(harness.temporary(), "gc.pb.gz")
    script = "import gc; gc.disable(); [gc.collect(0) for _ in range(100)]"
    for kind, script, wanted in (("gc", script, lambda n: 100 <= n < 150),
                                 ("import", "import json.decoder", lambda n: 3 <= n < 60)):
        process = harness.start(out, hz=None, options=["--events", kind],
                                command=[test_probes.PYTHON, "-I", "-c", script])
        run = harness.finish(process)
        assert run.rc == 0, run.err
        count = sum(sample.values[1] for sample in harness.load(out).samples)
        assert wanted(count), (kind, count, run.err)


# ---------------------------------------------------------------- gc

def test_collections_are_those_of_gc_callbacks(python):
    need_probes(python)
    out = os.path.join(harness.temporary(), "gc.pb.gz")
    with harness.Target("collects.py", python=python) as target:
        process = harness.start(out, target.pid, hz=None, options=["--events", "gc"])
        test_probes.await_sites(process, 2)
        open(target.path("go"), "w").close()
        target.wait("done")
        run = harness.finish(process, signal_number=signal.SIGINT)
        assert run.rc == 0, run.err
        truth = target.read("collects.json")["collections"]
    profile = harness.load(out)
    assert [t[0] for t in profile.sample_types] == ["gc_pause", "collections"]
    wanted, got = collections.Counter(), collections.Counter()
    wanted_ns, got_ns = collections.Counter(), collections.Counter()
    for generation, ns in truth:
        wanted[generation] += 1
        wanted_ns[generation] += ns
    for sample in profile.samples:
        generation = int(sample.labels["generation"])
        got[generation] += sample.values[1]
        got_ns[generation] += sample.values[0]
    assert got == wanted, (got, wanted, run.err)
    off = sum(got_ns.values()) / sum(wanted_ns.values()) - 1
    print("%d collections, pauses %+.1f %% of gc.callbacks'" % (sum(got.values()), 100 * off))
    assert abs(off) < 0.05, (got_ns, wanted_ns)
    assert abs(got_ns[2] / wanted_ns[2] - 1) < 0.05, (got_ns, wanted_ns)
    causes = collections.Counter()
    for sample in profile.samples:
        names = {f.name for f in sample.frames if f.kind == "python"}
        causes["by_hand" if "by_hand" in names else "by_garbage" if "by_garbage" in names
               else "other"] += sample.values[1]
    assert causes["by_hand"] >= 20 and not causes["other"], causes


test_collections_are_those_of_gc_callbacks.cases = everyone
test_collections_are_those_of_gc_callbacks.few = harness.ends
test_collections_are_those_of_gc_callbacks.alone = "one a CPU"


# ---------------------------------------------------------------- import

SLOW = "import time\ntime.sleep(%g)\n"  # a busy machine lets computing last longer
PACKAGE = {
    "slow_outer.py": SLOW % 0.02 + "import slow_middle\n" + SLOW % 0.02,
    "slow_middle.py": SLOW % 0.06 + "import slow_inner\nfrom slow_folder import slow_leaf\n",
    "slow_inner.py": SLOW % 0.10,
    "slow_folder/__init__.py": SLOW % 0.03,
    "slow_folder/slow_leaf.py": SLOW % 0.05,
    "slow_raises.py": SLOW % 0.08 + "raise ValueError('here')\n",
    "slow_around.py": SLOW % 0.01 + "try:\n    import slow_raises\nexcept ValueError: pass\n" +
                      SLOW % 0.13,
    "slow_end.py": SLOW % 0.15,
    "program.py": "import slow_outer\nimport slow_around\nimport json.decoder\nimport slow_end\n",
}
OWN = {"slow_outer": 0.04, "slow_middle": 0.06, "slow_inner": 0.10, "slow_folder": 0.03,
       "slow_folder.slow_leaf": 0.05, "slow_raises": 0.08, "slow_around": 0.14, "slow_end": 0.15}


def package(root):
    directory = harness.temporary(root)
    for name, text in PACKAGE.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    return directory


def importtime(python, program):
    """module -> self time in s, by -X importtime"""
    told = subprocess.run(list(python.command) + ["-X", "importtime", program],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=True,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1")).stderr.decode()
    return {name.strip(): int(us) / 1e6 for us, name in re.findall(
        r"^import time:\s+(\d+) \|\s+\d+ \| (.*)$", told, re.M)}


def test_imports_are_those_of_importtime(python):
    """The program ends right after its last import, which is in the profile."""
    need_probes(python)
    directory = package(python.root)
    program = os.path.join(directory[len(python.root):], "program.py")
    truth = importtime(python, program)
    out = os.path.join(harness.temporary(), "import.pb.gz")
    with harness.Target("collects.py", python=python):  # so that its file is known
        process = harness.start(out, None, hz=None, options=["--events", "import"])
        test_probes.await_sites(process, 2)
        child = subprocess.Popen(list(python.command) + [program], stdin=subprocess.DEVNULL,
                                 env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
        assert child.wait() == 0
        run = harness.finish(process, signal_number=signal.SIGINT)
        assert run.rc == 0, run.err
    profile = harness.load(out)
    assert [t[0] for t in profile.sample_types] == ["import", "imports"]
    took, times = collections.Counter(), collections.Counter()
    # `chroot` becomes the interpreter.
    samples = [s for s in profile.samples if s.labels["pid"] == child.pid]
    for sample in samples:
        took[sample.labels["module"]] += sample.values[0] / 1e9
        times[sample.labels["module"]] += sample.values[1]
    print({name: round(took[name], 3) for name in OWN})
    for name, own in OWN.items():
        assert times[name] == 1, (name, times, run.err)
        assert own - 0.002 < took[name] < own + 0.1, (name, took[name], own)
    # Of an import that raised importtime tells nothing, or all since; others may be late by chance.
    theirs = [name for name in sorted(truth, key=truth.get, reverse=True)
              if name in OWN and name != "slow_raises"]
    for longer in theirs:
        for shorter in theirs:
            if truth[longer] - truth[shorter] > 0.06:
                assert took[longer] > took[shorter], (longer, shorter, took, truth)
    assert set(OWN) <= {name for name, _ in took.most_common(16)}, took
    (leaf,) = [s for s in samples if s.labels["module"] == "slow_inner"]
    files = [os.path.basename(f.file) for f in leaf.frames
             if f.kind == "python" and os.path.basename(f.file) in PACKAGE]
    assert files == ["slow_middle.py", "slow_outer.py", "program.py"], files


test_imports_are_those_of_importtime.cases = everyone
test_imports_are_those_of_importtime.few = harness.ends
test_imports_are_those_of_importtime.alone = "one a CPU"
