# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: the GPU's memory that is live, by the lines that allocated it, is what the
stand-in of libcuda (tests/fakes) has by the same lines."""
import collections
import contextlib
import glob
import json
import os
import signal
import time

import harness
import test_dump
from test_dump import ask
from test_pyprof import run as pyprof
from test_cuda import await_links
from test_cuda_graphs import lost

SPACE, OBJECTS = 4, 5
TARGET = "cuda_memory.py"


def target(*steps):
    return harness.Target(TARGET, *steps, env={"FAKES": harness.need_fakes(),
                                               "FAKE_CUDA_DEVICES": "2"})


def take(program, name):
    """Has a step done; returns what the library knows then."""
    open(program.path(name + ".wanted"), "w").close()
    program.wait(name + ".json", 90)
    return program.read(name + ".json")


def wanted_of(truth):
    """line -> (blocks, bytes)"""
    return {int(line): tuple(live) for line, live in truth["live"].items()}


def live_of(profile, pid):
    """line of the target, 0: another stack -> (blocks, bytes)"""
    found = collections.defaultdict(lambda: [0, 0])
    for sample in profile.samples:
        if int(sample.labels["pid"]) != pid or not sample.values[OBJECTS]:
            continue
        lines = [frame.line for frame in sample.frames if frame.file.endswith(TARGET)]
        found[lines[0] if lines else 0][0] += sample.values[OBJECTS]
        found[lines[0] if lines else 0][1] += sample.values[SPACE]
    return {line: tuple(live) for line, live in found.items()}


def started(out, pid, options=()):
    return harness.start(out, pid, hz=None,
                         options=["--events", "cuda", "--max-slowdown", "100%"] + list(options))


def ended(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return run.err


def after(*steps):
    """(profile of the steps, what the library knows, what pyprofd said, program)"""
    with target(*steps) as program:
        out = os.path.join(harness.temporary(), "out.pb.gz")
        process = started(out, program.pid)
        await_links(process)
        for name in steps:
            if name != "before":
                truth = take(program, name)
        said = ended(process)
        return harness.load(out), truth, said, program


def assert_agrees(profile, truth, said, pid):
    assert live_of(profile, pid) == wanted_of(truth), (live_of(profile, pid), truth["live"], said)
    assert not lost(said, "cuda_blocks_full") and not lost(said, "cuda_frees_unknown"), said


# ---------------------------------------------------------------- what is live

def test_live_memory_is_the_librarys_own_by_line():
    """Of several programs, each with steps of its own."""
    of_steps = {}
    with contextlib.ExitStack() as stack:
        programs = {steps: stack.enter_context(target(*steps)) for steps in (
            ("allocates",), ("allocates", "frees"), ("allocates", "frees", "fails"),
            ("allocates", "contexts"), ("allocates", "forks"))}
        out = os.path.join(harness.temporary(), "out.pb.gz")
        process = started(out, [program.pid for program in programs.values()])
        await_links(process)
        for steps, program in programs.items():
            for name in steps:
                of_steps[steps] = take(program, name)
        said = ended(process)
    profile = harness.load(out)
    for steps, program in programs.items():
        assert_agrees(profile, of_steps[steps], said, program.pid)
        assert of_steps[steps]["totals"]["live_bytes"] == sum(
            sample.values[SPACE] for sample in profile.samples
            if int(sample.labels["pid"]) == program.pid), steps


def window_after(store, moment):
    """The profile of the first window that began after that."""
    for _ in range(600):
        for path in sorted(glob.glob(os.path.join(store, "**", "*-cuda.pb.gz"), recursive=True)):
            profile = harness.load(path)
            if profile.time_ns > moment * 1e9:
                return profile
        time.sleep(0.02)
    raise AssertionError("no window: %s" % os.listdir(store))


def test_each_window_has_what_is_live_at_its_end():
    steps = ("allocates", "frees", "fails", "contexts", "forks")
    store = os.path.join(harness.temporary(), "store")
    with target(*steps) as program:
        os.mkdir(store)
        process = started(store, program.pid, ("--interval", "1s"))
        await_links(process)
        for name in steps:
            truth = take(program, name)
            profile = window_after(store, time.time())
            assert live_of(profile, program.pid) == wanted_of(truth), (name, truth["live"])
        program.stop()
        time.sleep(1)
        said = ended(process)
    # What the process had when it ended is in one window more, and in none after it.
    read = json.loads(pyprof("gpu", "--view", "memory", "--json", store))
    found = {row["line"]: row["inuse_space"] for row in read["rows"] if row["inuse_space"]}
    assert found == {line: live[1] for line, live in wanted_of(truth).items()}, (found, said)


def test_clients_see_what_is_live_now():
    with target("allocates", "frees") as program:
        process, path = test_dump.agent(harness.temporary(), options=(
            "--events", "cuda", "--pid", str(program.pid)))
        await_links(process)
        for name in ("allocates", "frees"):
            truth = take(program, name)
            told = json.loads(ask("--live", "--for", 2, "--view", "memory", "--json",
                                  "--socket", path, verb="gpu"))
            found = {row["line"]: (row["inuse_objects"], row["inuse_space"])
                     for row in told["rows"] if row["inuse_space"]}
            assert found == wanted_of(truth), (name, found, truth["live"])
    harness.finish(process, signal_number=signal.SIGINT)


# ---------------------------------------------------------------- bounds

def test_beyond_the_walks_memory_is_of_other_stacks_and_none_is_lost():
    profile, truth, said, program = after("thousands")
    live = live_of(profile, program.pid)
    (line, wanted), = wanted_of(truth).items()
    assert sum(blocks for blocks, _ in live.values()) == wanted[0] == 9000, live
    assert sum(size for _, size in live.values()) == wanted[1], live
    # 10 s of walks are saved, one in 2 ms.
    assert set(live) == {line, 0} and live[line][0] >= 5000, live
    assert not lost(said, "cuda_blocks_full"), said
    profile, truth, said, program = after("thousands", "frees_most")
    assert sum(blocks for blocks, _ in live_of(profile, program.pid).values()) == 10


def test_what_finds_no_room_is_counted():
    profile, truth, said, program = after("too_many")
    assert sum(blocks for blocks, _ in live_of(profile, program.pid).values()) == 16384
    assert lost(said, "cuda_blocks_full") == 17000 - 16384, said
    profile, truth, said, program = after("too_many", "frees_most", "allocates")
    assert lost(said, "cuda_frees_unknown") == 17000 - 16384 - 10, said
    # The ten that are left had no room.  Walks are used up: what of it has a stack is by chance.
    wanted = [sum(live) for live in zip(*wanted_of(truth).values())]
    found = [sum(live) for live in zip(*live_of(profile, program.pid).values())]
    assert found == [wanted[0] - 10, wanted[1] - 640], (found, truth["live"])


def test_memory_from_before_is_unknown_and_its_frees_tell():
    profile, truth, said, program = after("before", "frees_before")
    assert sum(live_of(profile, program.pid).values(), ()) == (1, 10), truth["live"]
    assert lost(said, "cuda_frees_unknown") == 4, said
