# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: what a stand-in of libcuda has counted itself, by function, kernel and stack."""
import collections
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import test_probes

TYPES = [("calls", "count"), ("cuda_host", "nanoseconds"), ("cuda_wait", "nanoseconds"),
         ("cuda_bytes", "bytes")]
CALLS, HOST, WAIT, BYTES = range(4)


def built(directory=None):
    """The directory of libcuda.so.1 and libcudart.so.12, as gcc -O2 makes them."""
    compiler = shutil.which("gcc") or shutil.which("clang-19") or shutil.which("cc")
    harness.need(compiler, "no C compiler")
    directory = directory or harness.temporary()
    for source, name in (("cuda_driver.c", "libcuda.so.1"), ("cuda_runtime.c", "libcudart.so.12")):
        subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-Wl,-soname," + name, "-o",
                        os.path.join(directory, name), os.path.join(harness.TARGETS, source),
                        "-lpthread", "-ldl"], check=True)
    return directory


def target(mode, **options):
    return harness.Target("cuda.py", mode, directory=built(), **options)


def started(pid, options=()):
    test_probes.need_links()
    out = os.path.join(harness.temporary(), "out.pb.gz")
    return harness.start(out, pid, hz=None, options=["--events", "cuda"] + list(options))


def ended(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    profile = harness.load(run.out)
    assert [tuple(t) for t in profile.sample_types] == TYPES, profile.sample_types
    return profile, run.err


def sums(profile, *labels, pid=None):
    """values of the labels -> the sums of the samples' values"""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for sample in profile.samples:
        if pid and sample.labels.get("pid") != pid:
            continue
        into = found[tuple(sample.labels.get(label, "") for label in labels)]
        for i, value in enumerate(sample.values):
            into[i] += value
    return dict(found)


def await_links(process, count=10):
    test_probes.await_sites(process, count)


# ---------------------------------------------------------------- one process

def test_calls_bytes_and_waits_are_the_librarys_own():
    with target("calls") as program:
        process = started(program.pid)
        await_links(process)
        counters = test_probes.go(program)
        profile, said = ended(process)
        by_api = sums(profile, "api")
        launches = sum(counters["launches"])
        assert by_api["cuLaunchKernel", ][CALLS] == launches == 3010, (by_api, said)
        assert by_api["cuGraphLaunch", ][CALLS] == counters["graphs"] == 10, by_api
        assert by_api["cuMemcpyHtoDAsync", ][CALLS] == counters["h2d_calls"], by_api
        assert by_api["cuMemcpyHtoDAsync", ][BYTES] == counters["h2d_bytes"], by_api
        assert by_api["cuMemcpyDtoH", ][BYTES] == counters["d2h_bytes"], by_api
        assert by_api["cuMemcpy2DAsync", ][BYTES] == counters["2d_bytes"], by_api
        assert by_api["cuMemsetD32Async", ][BYTES] == counters["fill_bytes"], by_api
        assert by_api["cuMemAlloc", ][CALLS] == counters["allocs"], by_api
        assert by_api["cuMemAlloc", ][BYTES] == counters["alloc_bytes"], by_api
        assert by_api["cuMemFree", ][CALLS] == counters["frees"], by_api
        synced = by_api["cuStreamSynchronize", ]
        assert synced[CALLS] == counters["syncs"] == 80, by_api
        off = synced[WAIT] / counters["sync_ns"] - 1
        print("time in synchronisations: %+.2f %% of the library's own" % (100 * off))
        assert 0 <= off < 0.02, (synced, counters)
        assert synced[WAIT] == synced[HOST], synced
        assert by_api["cuLaunchKernel", ][HOST:] == [0, 0, 0], by_api
        assert by_api["cuMemcpyDtoH", ][WAIT] > 40 * 500000, by_api
        directions = {api: direction for api, direction in sums(profile, "api", "direction")}
        assert directions["cuMemcpyHtoDAsync"] == directions["cuMemcpy2DAsync"] == "HtoD"
        assert directions["cuMemcpyDtoH"] == "DtoH" and directions["cuLaunchKernel"] == ""


test_calls_bytes_and_waits_are_the_librarys_own.alone = True


def test_the_kernel_is_below_the_call_and_both_below_the_python_line():
    with target("calls") as program:
        process = started(program.pid)
        await_links(process)
        test_probes.go(program)
        profile, said = ended(process)
        launched = [s for s in profile.samples if s.labels["api"] == "cuLaunchKernel"]
        walked = [s for s in launched if len(s.frames) > 2]
        assert sum(s.values[CALLS] for s in walked) == 3010, (launched, said)
        for sample in walked:
            assert sample.frames[0].name == "first_kernel_1", sample
            assert sample.frames[0].module == "[gpu]", sample
            assert sample.frames[1].name.startswith("cuLaunchKernel"), sample
            assert sample.labels["kernel"] == "first_kernel_1", sample
            assert sample.labels["device"] == "3", sample
        lines = {f.line for s in walked for f in s.frames if f.kind == "python" and
                 f.name == "launch"}
        with open(program.path("cuda.py"), encoding="ascii") as file:
            text = file.read().splitlines()
        called = {text[line - 1].strip().split("(")[0] for line in lines}
        # Of the twin there are ten calls in 3,010: they may have been walked or not.
        assert "driver.cuLaunchKernel" in called and called <= {
            "driver.cuLaunchKernel", "driver.cuLaunchKernel_ptsz"}, (lines, called)
        synced = [s for s in profile.samples if s.labels["api"] == "cuStreamSynchronize"]
        assert all(s.frames[0].name.startswith("cuStreamSynchronize") for s in synced), synced


def test_threads_that_launch_at_once_lose_nothing():
    with target("threads") as program:
        process = started(program.pid)
        await_links(process)
        counters = test_probes.go(program)
        profile, said = ended(process)
        by_kernel = sums(profile, "kernel")
        assert all(by_kernel["kernel_%d" % i, ][CALLS] == counters["launches"][i]
                   for i in range(64)), (by_kernel, counters, said)
        total = sums(profile, "api")
        assert total["cuLaunchKernel", ][CALLS] == sum(counters["launches"]) == 200000, total
        walked = [s for s in profile.samples if s.labels.get("kernel") and len(s.frames) > 2]
        leaves = [[f.name for f in s.frames[:3]] for s in walked]
        assert walked and all(
            leaf[0] == s.labels["kernel"] and leaf[1] == "cuLaunchKernel" and
            leaf[2].startswith(("fake_drive", "drive_thread"))
            for leaf, s in zip(leaves, walked)), leaves[:3]


def test_system_wide_children_count_for_themselves():
    with target("forks") as program:
        process = started(None)
        await_links(process)
        test_probes.go(program)
        child = program.read("child.json")
        profile, said = ended(process)
        assert sums(profile, "api", pid=program.pid)["cuLaunchKernel", ][CALLS] == 1000, said
        assert sums(profile, "api", pid=child)["cuLaunchKernel", ][CALLS] == 400, said


# ---------------------------------------------------------------- runtime and driver

def test_a_call_of_runtime_and_driver_counts_once():
    with target("runtime") as program:
        process = started(program.pid)
        await_links(process, 1)
        open(program.path("go"), "w").close()
        program.wait("half")
        open(program.path("further"), "w").close()
        program.wait("driver")
        await_links(process, 10)
        time.sleep(0.5)  # the runtime's links go first
        open(program.path("last"), "w").close()
        program.wait("done")
        profile, said = ended(process)
        by_api = sums(profile, "api")
        assert by_api["cudaLaunchKernel", ][CALLS] == 200, (by_api, said)
        assert by_api["cuLaunchKernel", ][CALLS] == 300, (by_api, said)


# ---------------------------------------------------------------- harm

def test_a_killed_pyprofd_leaves_the_program_as_it_was():
    with target("drive") as program:
        for _ in range(3):
            process = started(program.pid)
            await_links(process)
            time.sleep(0.3)
            process.kill()
            process.wait()
        program.ask_to_stop()
        program.wait("done")
        counters = program.read("counters.json")
        # Each launch adds its parameters: kernels 0 .. 7 in turn.
        launches = counters["launches"]
        of_parameters = 1 + 2 * 2 + 3 * 3 + 4 * 4 + 5 * 5 + 6 * 6 + 7 * 7 + 8 * 8
        expected = sum(n * (0x7000 + 16 * i + of_parameters) for i, n in enumerate(launches))
        assert counters["checksum"] == expected, (counters, expected)
        assert program.stop() == 0


def test_nothing_is_attached_where_nothing_maps_cuda():
    with harness.Target("burn.py", 0) as program:
        process = started(program.pid)
        harness.sampling(process)
        time.sleep(1)
        assert test_probes.sites(process) == 0
        profile, said = ended(process)
        assert not profile.samples and not re.search("(?i)warn|error", said), (profile, said)


def test_a_file_that_is_only_called_so_does_no_harm():
    directory = harness.temporary()
    with open(os.path.join(directory, "libcuda.so.1"), "wb") as file:
        file.write(b"\x7fELF" + os.urandom(100000))
    code = ("import mmap,os,time; f=open('libcuda.so.1','r+b');"
            "m=mmap.mmap(f.fileno(),0,mmap.MAP_PRIVATE,mmap.PROT_READ|mmap.PROT_EXEC);"
            "open('ready','w').close(); time.sleep(60)")
    with open(os.path.join(directory, "maps.py"), "w", encoding="ascii") as file:
        file.write(code)
    program = subprocess.Popen(["/usr/bin/python3", "maps.py"], cwd=directory)
    try:
        harness.wait_for(lambda: os.path.exists(os.path.join(directory, "ready")), 30, "ready")
        process = started(program.pid)
        harness.sampling(process)
        time.sleep(1)
        assert test_probes.sites(process) == 0
        profile, _ = ended(process)
        assert not profile.samples, profile.samples
    finally:
        program.kill()
        program.wait()
