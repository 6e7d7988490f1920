# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: what is captured is not run, graphs run what they recorded, and handles that are
given out again are others: what the fakes (tests/fakes) know of it themselves."""
import collections
import json
import re

import harness
from test_cuda import (BYTES, CALLS, UNCOUNTED, agrees, await_links, ended, go, label_of, started,
                       sums, watched_together)


def target(mode, **options):
    fakes = harness.need_fakes()
    return harness.Target("cuda_graphs.py", mode, json.dumps(options),
                          env={"FAKES": fakes, "FAKE_CUDA_DEVICES": "4"})


def lost(said, name):
    """A counter of what pyprofd says at the end."""
    found = re.search(r"([\d,]+) %s\b" % name, said)
    return int(found.group(1).replace(",", "")) if found else 0


def assert_graphs_agree(profile, truth):
    """What rows of kind cuda_calls say of captured calls and of kernels in graphs."""
    captured, nodes = collections.Counter(), 0
    for labels, values in profile.totals:
        captured[labels.get("api")] += values["captured"]
        nodes += values["nodes"]
    wanted = collections.Counter()
    for name, row in truth["api"].items():
        if not UNCOUNTED.match(name):
            wanted[label_of(name)] += row["captured"]
    assert +captured == +wanted, (captured, wanted)
    assert nodes == sum(row["in_graphs"] for row in truth["kernels"].values()), (
        nodes, truth["kernels"])


# ---------------------------------------------------------------- captures and graphs

def check_captures(profile, truth, _):
    """Captured calls do not run, and graphs do."""
    api = truth["api"]
    assert api["cuLaunchKernel"]["captured"] == 104 and api["cuGraphLaunch"]["captured"] == 2
    # Each launch of the first graph copies and fills what it has.
    by_api = sums(profile, "api")
    assert by_api["cuGraphLaunch", ][BYTES] == 20 * (1000 + 300 + 200), by_api
    assert by_api["cuMemcpyHtoDAsync", ][BYTES] == 1000, by_api
    assert by_api["cuMemsetD32Async", ][BYTES] == 200, by_api
    assert by_api["cuMemAllocAsync", ][BYTES] == 5000, by_api
    assert api["cuMemAllocAsync"]["captured"] == api["cuMemFreeAsync"]["captured"] == 1, api
    graphs = sums(profile, "api", "graph")
    counts = sorted(values[CALLS] for (name, graph), values in graphs.items()
                    if name == "cuGraphLaunch" and graph.startswith("graph@0x"))
    assert counts == [1, 2, 3, 4, 20], graphs
    assert all(not graph for name, graph in graphs if name != "cuGraphLaunch"), graphs


def check_spreads(_, truth, __):
    """An event takes a stream into the capture, in the first one of a run as in later ones."""
    assert truth["kernels"]["_Z5otherPf"]["captured"] == 150, truth["kernels"]
    assert truth["kernels"]["_Z5thirdPf"]["captured"] == 120, truth["kernels"]


def check_goes_wrong(_, truth, __):
    """Captures that go wrong leave nothing behind."""
    assert truth["api"]["cuLaunchKernel"]["captured"] == 5, truth["api"]["cuLaunchKernel"]


def check_built(profile, truth, _):
    """Graphs built by hand have what was put into them."""
    copies = truth["copies"]
    assert copies["htod"]["in_graphs"] == 51 and copies["memset"]["in_graphs"] == 40, copies
    by_api = sums(profile, "api")
    assert by_api["cuGraphLaunch", ][BYTES] == sum(row["bytes"] for row in copies.values())


# ---------------------------------------------------------------- labels

def check_streams(profile, _, program):
    first, second = ("0x%x" % handle for handle in program.read("streams.json"))
    launched = {stream: values[CALLS] for (kernel, stream), values in
                sums(profile, "kernel", "stream").items() if kernel}
    assert launched == {"default": 1 + 2 + 16 + 256, "per-thread": 4 + 8 + 128, first: 32,
                        second: 64}, launched
    copied = {stream: values[BYTES] for (api, stream), values in
              sums(profile, "api", "stream").items() if "Memcpy" in api}
    assert copied == {first: 10, "default": 20, "": 40}, copied
    synced = {stream for api, stream in sums(profile, "api", "stream")
              if api == "cuStreamSynchronize"}
    assert synced == {second}, synced


def check_contexts(profile, _, __):
    """The device is that of the current context; it had its first one before anybody looked."""
    devices = {device: values[CALLS] for (device,), values in sums(profile, "device").items()}
    assert devices == {"unknown": 1 + 32 + 128, "1": 2 + 8, "2": 4 + 16 + 256, "3": 64}, devices


def check_unloads(_, truth, __):
    """A handle that is given out again has another name."""
    assert len(truth["kernels"]) == 7, truth["kernels"]


def check_batches(profile, _, __):
    """Bytes of long batches are scaled and told."""
    assert sums(profile, "api")["cuMemcpyBatchAsync", ][BYTES] == 2 * 133 * 1000


def test_captures_graphs_and_handles_are_the_drivers_own():
    """Each program of the target, all under one pyprofd; counters of losses are of all of them."""
    checks = {name[len("check_"):]: check for name, check in globals().items()
              if name.startswith("check_")}
    _, found, said = watched_together({mode: target(mode) for mode in checks})
    for mode, (profile, truth, program) in found.items():
        agrees(profile, truth, said)
        if "cuGraphLaunch" in truth["api"]:
            assert_graphs_agree(profile, truth)
        checks[mode](profile, truth, program)
    assert not lost(said, "cuda_captures_unseen") and not lost(said, "cuda_graphs_unknown"), said
    assert lost(said, "cuda_bytes_guessed") == 2, said


def test_graphs_from_before_are_told_as_unknown():
    with target("unknown") as program:
        process = started(program.pid)
        await_links(process)
        go(program)
        profile, said = ended(process)
    by_api = sums(profile, "api")
    calls, *others = by_api["cuGraphLaunch", ]
    assert calls == 6 and not any(others), by_api
    assert lost(said, "cuda_graphs_unknown") == 6, said
