# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: collectives of NCCL, as a stand-in of it (tests/fakes) has counted them."""
import json
import signal

import harness
import test_probes
from test_cuda import BYTES, CALLS, HOST, await_links, go, loaded, started, sums, target
from test_cuda_graphs import lost
from test_pyprof import run as pyprof

UNKNOWN_BYTES = 7  # of a type that nobody knows, as if each element had one


FUNCTIONS = 8  # of the stand-in, that are counted; each begins and ends


def watched():
    """(the run, what NCCL counted, what libcuda counted)"""
    with target("collectives") as program:
        process = started(program.pid)
        await_links(process)
        before = test_probes.sites(process)
        open(program.path("go"), "w").close()
        program.wait("loaded", 30)
        await_links(process, before + 2 * FUNCTIONS)
        open(program.path("further"), "w").close()
        truth = go(program)
        run = harness.finish(process, signal_number=signal.SIGINT)
        assert run.rc == 0, run.err
        return run, program.read("collectives.json"), truth


def test_calls_and_bytes_are_those_of_nccl():
    run, wanted, truth = watched()
    profile, said = loaded(run.out), run.err
    ranks, pair = wanted.pop("communicators")
    wanted["ncclAllReduce"][0] += 1
    wanted["ncclAllReduce"][1] += UNKNOWN_BYTES
    found = {api: values for (api,), values in sums(profile, "api").items()
             if api.startswith("nccl")}
    assert {api: [v[CALLS], v[BYTES]] for api, v in found.items()} == wanted, (found, wanted, said)
    assert all(values[HOST] > 0 for values in found.values()), found
    assert lost(said, "cuda_bytes_guessed") == 1, said
    by = sums(profile, "api", "communicator")
    assert by["ncclAllReduce", ranks][CALLS] == wanted["ncclAllReduce"][0] - 1, by
    assert by["ncclSend", pair][BYTES] == wanted["ncclSend"][1], by
    assert {communicator for api, communicator in by if api == "ncclGroupEnd"} == {""}, by
    # The kernels that it launches are calls of their own.
    kernels = {kernel: values[CALLS] for (kernel,), values in sums(profile, "kernel").items()
               if kernel}
    assert sum(kernels.values()) == sum(row["calls"] for row in truth["kernels"].values()), kernels
    assert all(kernel.startswith("ncclDevKernel_") for kernel in kernels), kernels


def test_callers_are_the_lines_of_the_program():
    run, wanted, _ = watched()
    for sample in loaded(run.out).samples:
        api, names = sample.labels.get("api"), [frame.name for frame in sample.frames]
        if api in ("ncclSend", "ncclRecv", "ncclGroupEnd"):
            assert names[0] == api and "exchange" in names, (names, run.err)
    rows = json.loads(pyprof("gpu", "--view", "collectives", "--json", run.out))["rows"]
    top = rows[0]
    assert (top["api"], top["name"]) == ("ncclAllReduce", "all_reduce"), rows
    assert sum(row["bytes"] for row in rows) == sum(
        values[1] for api, values in wanted.items() if api.startswith("nccl")) + UNKNOWN_BYTES, rows
    text = pyprof("gpu", "--view", "collectives", run.out)
    assert "ncclReduceScatter" in text and "all_reduce" in text, text
    whole = pyprof("gpu", run.out)
    assert "collectives" in whole and "launches" in whole, whole
    print(text)
