# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: what is captured is not run, graphs run what they recorded, and handles that are
given out again are others: what the fakes (tests/fakes) know of it themselves."""
import collections
import json
import re

import harness
from test_cuda import (BYTES, CALLS, UNCOUNTED, agrees, await_links, ended, go, label_of, started,
                       sums)


def target(mode, **options):
    fakes = harness.need_fakes()
    return harness.Target("cuda_graphs.py", mode, json.dumps(options),
                          env={"FAKES": fakes, "FAKE_CUDA_DEVICES": "4"})


def watched(mode, **options):
    with target(mode, **options) as program:
        process = started(program.pid)
        await_links(process)
        truth = go(program)
        profile, said = ended(process)
        return profile, truth, said, program


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


def assert_nothing_guessed(said):
    for name in ("captures_unseen", "graphs_unknown", "bytes_guessed"):
        assert not lost(said, "cuda_" + name), said


# ---------------------------------------------------------------- captures

def test_captured_calls_do_not_run_and_graphs_do():
    profile, truth, said, _ = watched("captures")
    agrees(profile, truth, said)
    assert_graphs_agree(profile, truth)
    assert_nothing_guessed(said)
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


def test_an_event_takes_a_stream_into_the_capture():
    """In the first capture of a run as in later ones."""
    profile, truth, said, _ = watched("spreads")
    agrees(profile, truth, said)
    assert_graphs_agree(profile, truth)
    assert_nothing_guessed(said)
    assert truth["kernels"]["_Z5otherPf"]["captured"] == 150, truth["kernels"]
    assert truth["kernels"]["_Z5thirdPf"]["captured"] == 120, truth["kernels"]


def test_captures_that_go_wrong_leave_nothing_behind():
    profile, truth, said, _ = watched("goes_wrong")
    agrees(profile, truth, said)
    assert truth["api"]["cuLaunchKernel"]["captured"] == 5, truth["api"]["cuLaunchKernel"]
    assert_nothing_guessed(said)


# ---------------------------------------------------------------- graphs

def test_graphs_built_by_hand_have_what_was_put_into_them():
    profile, truth, said, _ = watched("built")
    agrees(profile, truth, said)
    assert_graphs_agree(profile, truth)
    assert_nothing_guessed(said)
    copies = truth["copies"]
    assert copies["htod"]["in_graphs"] == 51 and copies["memset"]["in_graphs"] == 40, copies
    by_api = sums(profile, "api")
    assert by_api["cuGraphLaunch", ][BYTES] == sum(row["bytes"] for row in copies.values())


def test_graphs_from_before_are_told_as_unknown():
    profile, truth, said, _ = watched("unknown")
    by_api = sums(profile, "api")
    calls, *others = by_api["cuGraphLaunch", ]
    assert calls == 6 and not any(others), by_api
    assert lost(said, "cuda_graphs_unknown") == 6, said


# ---------------------------------------------------------------- labels

def test_each_stream_is_a_label():
    profile, truth, said, program = watched("streams")
    agrees(profile, truth, said)
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


def test_the_device_is_that_of_the_current_context():
    profile, truth, said, _ = watched("contexts")
    agrees(profile, truth, said)
    devices = {device: values[CALLS] for (device,), values in sums(profile, "device").items()}
    # It had its first one before anybody looked.
    assert devices == {"unknown": 1 + 32 + 128, "1": 2 + 8, "2": 4 + 16 + 256, "3": 64}, devices


def test_a_handle_that_is_given_out_again_has_another_name():
    profile, truth, said, _ = watched("unloads")
    agrees(profile, truth, said)
    assert len(truth["kernels"]) == 7, truth["kernels"]


def test_bytes_of_long_batches_are_scaled_and_told():
    profile, truth, said, _ = watched("batches")
    agrees(profile, truth, said)
    assert lost(said, "cuda_bytes_guessed") == 2, said
    assert sums(profile, "api")["cuMemcpyBatchAsync", ][BYTES] == 2 * 133 * 1000
