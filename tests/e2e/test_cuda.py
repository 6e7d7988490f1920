# SPDX-License-Identifier: BSD-2-Clause
"""--events cuda: what stand-ins of CUDA's libraries (tests/fakes) have counted themselves, by
function, kernel, direction and stack."""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import harness
import test_probes

sys.path.insert(0, os.path.join(harness.TOP, "tests", "fakes"))
import fakecuda  # noqa: E402

TYPES = [("calls", "count"), ("cuda_host", "nanoseconds"), ("cuda_wait", "nanoseconds"),
         ("cuda_bytes", "bytes"), ("inuse_space", "bytes"), ("inuse_objects", "count")]
CALLS, HOST, WAIT, BYTES = range(4)
SETTLED_S = 0.6  # from one link of a file to the next it is 0.02 s, or 0.2 on a busy machine
# What the stand-ins have and pyprofd does not count: what gives handles, asks or records.
UNCOUNTED = re.compile(r"cu(Init|Driver|Device|Ctx(?!Synchronize)|Get|Module|Library|Kernel|Func|"
                       r"Event(?!Synchronize)|Graph(?!Launch)|MemGetInfo|Stream(?!Synchronize))")
WAITS = re.compile(r"cu(StreamSynchronize|CtxSynchronize|EventSynchronize|Memcpy(?!.*Async))")
# Names on the device (fakecuda.KERNELS, libfakeblas), as a reader sees them.
SHOWN = {"_Z9vectorAddPKfS0_Pfi": "vectorAdd",
         "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i": "fake::matmul<float, 16>",
         "_ZN4fake15nms_kernel_implEPKfi": "fake::nms_kernel_impl",
         "_Z11reduce_rowsPKfPfi": "reduce_rows",
         "_Z7softmaxPfi": "softmax",
         "_ZN8fakeblas12sgemm_128x64EPKfS1_Pfiii": "fakeblas::sgemm_128x64"}
DIRECTIONS = {"htod": "HtoD", "dtoh": "DtoH", "dtod": "DtoD", "htoh": "HtoH", "ptop": "peer"}


def target(mode, variant="", env=None, **options):
    fakes = harness.need_fakes()
    harness.need_fakes(variant)
    return harness.Target("cuda.py", mode, json.dumps(dict({"variant": variant}, **options)),
                          env=dict({"FAKES": fakes}, **(env or {})))


def runtime_alone():
    """A directory with a runtime that finds no driver."""
    directory = harness.temporary()
    shutil.copy(os.path.join(harness.need_fakes(), "libcudart.so.12"), directory)
    return directory


def started(pid, options=()):
    test_probes.need_links()
    out = os.path.join(harness.temporary(), "out.pb.gz")
    return harness.start(out, pid, hz=None,
                         options=["--events", "cuda", "--max-slowdown", "100%"] + list(options))


def loaded(path):
    """One file: the samples of kind cuda.  Values of records stand behind theirs."""
    profile = harness.load(path)
    told = [tuple(t) for t in profile.sample_types]
    assert told[:len(TYPES)] == TYPES, told
    profile.totals = [(s.labels, dict(zip([name for name, _ in told], s.values)))
                      for s in profile.samples]
    profile.samples = [s._replace(values=s.values[:len(TYPES)]) for s in profile.samples
                       if any(s.values[:len(TYPES)])]
    return profile


def ended(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return loaded(run.out), run.err


def sums(profile, *labels, pid=None):
    """values of the labels -> the sums of the samples' values"""
    found = collections.defaultdict(lambda: [0] * len(TYPES))
    for sample in profile.samples:
        if pid and sample.labels.get("pid") != pid:
            continue
        into = found[tuple(sample.labels.get(label, "") for label in labels)]
        for i, value in enumerate(sample.values):
            into[i] += value
    return dict(found)


def settle(count):
    """Waits until no places come any more: launches have links of their own, the last of a file."""
    before, since = count(), time.monotonic()
    while time.monotonic() - since < SETTLED_S:
        time.sleep(0.05)
        now = count()
        if now != before:
            before, since = now, time.monotonic()


def await_links(process, count=10):
    test_probes.await_sites(process, count)
    settle(lambda: test_probes.sites(process))


def go(program):
    """Lets it do its calls; returns what the library counted."""
    open(program.path("go"), "w").close()
    program.wait("done", 90)
    return program.read("truth.json")


def watched(mode, variant="", pid=True, **options):
    """(profile, truth, what pyprofd said, program) of a program of one mode"""
    with target(mode, variant, **options) as program:
        process = started(program.pid if pid else None)
        await_links(process)
        truth = go(program)
        profile, said = ended(process)
        return profile, truth, said, program


def watched_together(targets):
    """(profile, name -> (its part of the profile, truth, program), what pyprofd said) of several
    programs under one pyprofd"""
    with contextlib.ExitStack() as stack:
        programs = {name: stack.enter_context(one) for name, one in targets.items()}
        process = started([program.pid for program in programs.values()])
        await_links(process)
        for program in programs.values():
            open(program.path("go"), "w").close()
        truths = {name: go(program) for name, program in programs.items()}
        profile, said = ended(process)
    return profile, {name: (of_process(profile, program.pid), truths[name], program)
                     for name, program in programs.items()}, said


def of_process(profile, pid):
    return types.SimpleNamespace(
        samples=[s for s in profile.samples if s.labels.get("pid") == pid],
        totals=[(labels, values) for labels, values in profile.totals if labels.get("pid") == pid])


# ---------------------------------------------------------------- the stand-ins' truth

def label_of(name):
    """An entry point as the label `api` has it: twins and versions are one."""
    return re.sub(r"_v\d+$", "", re.sub(r"_pt[sd][sz]$", "", name))


def shown(mangled):
    """The name of a kernel of these tests as a reader sees it: without parameters."""
    return SHOWN.get(mangled) or re.fullmatch(r"_Z\d+(\w+?)(v|Pfi|Pf)", mangled).group(1)


def by_label(truth):
    """label -> (calls but those that were captured, their bytes, ns in those that wait)"""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for name, row in truth["api"].items():
        if not UNCOUNTED.match(name) and row["calls"] > row["captured"]:
            found[label_of(name)][0] += row["calls"] - row["captured"]
            found[label_of(name)][1] += row["bytes"] - row["captured_bytes"]
            found[label_of(name)][2] += row["wait_ns"] if WAITS.match(name) else 0
    return {label: tuple(values) for label, values in found.items()}


def agrees(profile, truth, said="", pid=None):
    """Calls by function and by kernel are the library's own, and so are bytes of copies and
    fills."""
    wanted, found = by_label(truth), sums(profile, "api", pid=pid)
    calls = {api: values[CALLS] for (api,), values in found.items() if values[CALLS]}
    assert calls == {api: values[0] for api, values in wanted.items()}, (calls, wanted, said)
    amounts = {api: values[BYTES] for (api,), values in found.items() if "cpy" in api}
    assert amounts == {api: values[1] for api, values in wanted.items() if "cpy" in api}, (
        amounts, wanted, said)
    kernels = {kernel: values[CALLS] for (kernel,), values in sums(profile, "kernel",
                                                                   pid=pid).items() if kernel}
    executed = {shown(name): row["calls"] - row["captured"]
                for name, row in truth["kernels"].items()}
    assert kernels == {name: calls for name, calls in executed.items() if calls}, (
        kernels, executed, said)


def moved(profile):
    """direction -> bytes"""
    return {direction: values[BYTES]
            for (direction,), values in sums(profile, "direction").items() if direction}


# ---------------------------------------------------------------- one process

def assert_amounts(profile, truth):
    by_api = sums(profile, "api")
    assert len(by_api) > 30, by_api
    for api, bytes_of_all in (("cuMemsetD8", 259), ("cuMemsetD32", 4 * 259),
                              ("cuMemsetD8Async", 259), ("cuMemsetD32Async", 4 * 259),
                              ("cuMemsetD2D8Async", 9 * 259), ("cuMemAlloc", 4096 * 125 * 251),
                              ("cuMemAllocAsync", 5000), ("cuMemHostAlloc", 4096),
                              ("cuMemAllocHost", 8192), ("cuMemFree", 0)):
        assert by_api[api, ][BYTES] == bytes_of_all, (api, by_api[api, ])
    # Of two the driver tells by the addresses which way it goes.
    way = {DIRECTIONS[name]: row["bytes"] for name, row in truth["copies"].items()
           if name in DIRECTIONS and row["bytes"]}
    way["HtoD"] -= 5
    way["DtoH"] -= 7
    assert moved(profile) == dict(way, unified=12), (moved(profile), truth["copies"])
    devices = {device for (device,) in sums(profile, "device")}
    assert devices == {"1"}, devices


def assert_stacks(profile, program):
    """The kernel is below the call, and both below the Python line."""
    launched = [s for s in profile.samples if s.labels["api"] == "cuLaunchKernel"]
    walked = [s for s in launched if len(s.frames) > 2]
    assert sum(s.values[CALLS] for s in walked) == 3010 + 3 * 40, launched
    for sample in walked:
        assert sample.labels["kernel"] in ("add", "other"), sample
        assert sample.frames[0].name == sample.labels["kernel"], sample
        assert sample.frames[0].module == "[gpu]", sample
        assert sample.frames[1].name.startswith("cuLaunchKernel"), sample
    with open(program.path("cuda.py"), encoding="utf-8") as file:
        text = file.read().splitlines()
    lines = {text[f.line - 1].strip() for s in walked for f in s.frames
             if f.kind == "python" and f.name == "launch" and f.file.endswith("/cuda.py")}
    assert lines == {"cuda.launch(kernel, grid=(1, 2, 3), block=(4, 5, 6), smem=7, "
                     "stream=stream)"}, lines
    synced = [s for s in profile.samples if s.labels["api"] == "cuStreamSynchronize"]
    assert all(s.frames[0].name.startswith("cuStreamSynchronize") for s in synced), synced


def test_calls_bytes_kernels_and_stacks_are_the_librarys_own():
    _, found, said = watched_together({variant: target("calls", variant)
                                       for variant in ("", "endbr", "nofp", "stripped")})
    for profile, truth, program in found.values():
        agrees(profile, truth, said)
        assert_amounts(profile, truth)
        assert_stacks(profile, program)


def test_time_in_calls_that_wait_is_the_librarys_own():
    profile, truth, said, _ = watched("calls")
    wanted, found = by_label(truth), sums(profile, "api")
    waited = sum(values[2] for values in wanted.values())
    counted = sum(values[WAIT] for values in found.values())
    off = counted / waited - 1
    print("time in calls that wait: %+.2f %% of the library's own" % (100 * off))
    assert 0 <= off < 0.02, (counted, waited, said)
    for api in ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH"):
        values = found[api, ]
        assert wanted[api][2] <= values[WAIT] == values[HOST], (api, values, wanted[api])
    for api in ("cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemsetD8Async"):
        assert found[api, ][HOST] == found[api, ][WAIT] == 0, found
    assert found["cuMemAlloc", ][HOST] > 0 == found["cuMemAlloc", ][WAIT], found


test_time_in_calls_that_wait_is_the_librarys_own.alone = "one a CPU"


def assert_failed_calls(profile, truth):
    by_api = sums(profile, "api")
    for api, name in (("cuLaunchKernel", ) * 2, ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
                      ("cuStreamSynchronize", ) * 2, ("cuMemAlloc", "cuMemAlloc_v2")):
        assert truth["api"][name]["errors"] == 5, truth["api"][name]
        assert by_api[api, ][CALLS] == truth["api"][name]["calls"] == 10, by_api
    assert by_api["cuMemcpyHtoDAsync", ][BYTES] == 100, by_api


RUNTIMES = (("", "libcudart.so.12", "libfakekernels12.so"),
            ("", "libcudart.abc123.so.13", "libfakekernels.abc123.so"),
            ("stripped", "libcudart.so.13", "libfakekernels.so"),
            ("endbr", "libcudart.so.13", "libfakekernels.so"),
            ("nofp", "libcudart.so.13", "libfakekernels.so"))


def test_calls_that_fail_and_those_by_runtimes_are_calls_of_the_driver():
    """By two runtimes at once and a hidden one, and by each alone: a launch is one call."""
    targets = {names: target("runs", names[0], cudart=names[1], kernels=names[2])
               for names in RUNTIMES}
    targets.update(fails=target("fails"), libraries=target("libraries"))
    _, found, said = watched_together(targets)
    for name, (profile, truth, _) in found.items():
        if name == "fails":
            assert_failed_calls(profile, truth)
        else:
            agrees(profile, truth, said)
        assert not any(api.startswith("cuda") for (api,) in sums(profile, "api")), profile


# ---------------------------------------------------------------- more than there is room for

def by_function(profile, kernel):
    """Of a kernel's launches: function of the target -> calls"""
    found = collections.Counter()
    for sample in profile.samples:
        if sample.labels.get("kernel") == kernel:
            names = [f.name for f in sample.frames if f.file.endswith("/cuda.py")]
            found[names[0] if names else ""] += sample.values[CALLS]
    return found


def test_few_launches_are_exact_by_line_and_of_many_a_share_is():
    """By default, beside a program that computes; 17,000 in three seconds is beyond the budget for
    stacks."""
    with target("lines") as program, harness.Target("burn.py", 0):
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), program.pid,
                                hz=None, options=["--events", "cuda"])
        await_links(process)
        truth = go(program)
        profile, said = ended(process)
    agrees(profile, truth, said)
    few, many = by_function(profile, "other"), by_function(profile, "add")
    assert few == {"first": 96, "second": 72, "third": 48}, (few, said)
    share = many["seldom"] / 17000
    print("one in ten is %.4f" % share)
    # 5,500 stacks or more: four times their standard error.
    assert abs(share - 0.1) < 0.017 and many["seldom"] + many["often"] == 17000, (many, said)
    assert not any(" on=" in comment for comment in profile.comments), profile.comments


def test_a_hundred_thousand_kernels_are_counted_if_not_by_name():
    profile, truth, said, _ = watched("many")
    calls = sums(profile, "api")["cuLaunchKernel", ][CALLS]
    assert calls == truth["api"]["cuLaunchKernel"]["calls"] == 100000, (calls, said)
    kernels = sums(profile, "kernel")
    others = kernels["[other kernels]", ][CALLS]
    # A process has as many rows as are left for all others.
    assert len(kernels) - 2 < 8192 and others >= 100000 - 8192, (len(kernels), others)
    lost = re.search(r"([\d,]+) cuda_full", said)
    assert lost and int(lost.group(1).replace(",", "")) == others, (others, said)


# The texts that it takes are missing elsewhere.
test_a_hundred_thousand_kernels_are_counted_if_not_by_name.alone = "one a CPU"


def test_threads_that_launch_at_once_lose_nothing():
    profile, truth, said, _ = watched("threads")
    agrees(profile, truth, said)
    walked = [s for s in profile.samples if s.labels.get("kernel") and len(s.frames) > 2]
    assert walked and all(s.frames[0].name == s.labels["kernel"] and
                          s.frames[1].name == "cuLaunchKernel" for s in walked), walked[:2]


def test_64_threads_are_counted_and_get_their_arguments():
    """By the driver, and by a stub of nvcc's."""
    command = os.path.join(harness.need_fakes(), "launches")
    programs = [subprocess.Popen([command, *way, "-w", "64", "0", "0.5"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for way in ([], ["-k"])]
    process = started([program.pid for program in programs])
    await_links(process)
    told = [program.communicate(b"")[0] for program in programs]
    profile, said = ended(process)
    for program, line in zip(programs, told):
        assert program.returncode == 0 and b"arguments ok" in line, (line, said)
        launches = int(line.split()[0])
        found = sums(profile, "api", pid=program.pid)
        assert found["cuLaunchKernel", ][CALLS] == launches, (found, line, said)
        assert found["cuStreamSynchronize", ][CALLS] == 64, found
        print(line.decode().strip())


# ---------------------------------------------------------------- processes and libraries

def test_system_wide_children_count_for_themselves():
    with target("forks") as program:
        process = started(None)
        await_links(process)
        truth = go(program)
        child = program.read("child.json")
        profile, said = ended(process)
        agrees(profile, truth, said, program.pid)
        of_child = program.read("child_truth.json")["api"]["cuLaunchKernel"]
        assert of_child["errors"] == of_child["calls"] == 400, of_child
        assert sums(profile, "api", pid=child)["cuLaunchKernel", ][CALLS] == 400, said


def test_another_program_of_the_process_has_its_own_kernels():
    with target("executes") as program:
        process = started(program.pid)
        await_links(process)
        open(program.path("go"), "w").close()
        program.wait("before.json")
        harness.wait_for(lambda: not os.path.exists(program.path("go")), 30, "its exec")
        program.wait("ready")
        time.sleep(0.5)  # the links of its new mapping
        truth = go(program)
        profile, said = ended(process)
        before = program.read("before.json")["kernels"]
        kernels = {kernel: values[CALLS] for (kernel,), values in sums(profile, "kernel").items()
                   if kernel}
        assert before["_Z3addPfi"]["calls"] == 500, before
        assert truth["kernels"]["_Z5otherPf"]["calls"] == 300, truth["kernels"]
        assert kernels == {"add": 500, "other": 300}, (kernels, said)


def test_a_library_that_is_loaded_again_is_counted_again():
    profile, truth, said, program = watched("opens_again")
    opened = program.read("opened.json")
    harness.need(opened["gone"], "the C library keeps a library that is closed")
    assert truth["api"]["cuLaunchKernel"]["calls"] == 300 and opened["before"] == 200
    calls = sums(profile, "api")["cuLaunchKernel", ][CALLS]
    assert calls == 500, (calls, said)


def test_a_process_that_ends_in_a_call_has_its_calls():
    with target("waits") as program:
        process = started(program.pid)
        await_links(process)
        open(program.path("go"), "w").close()
        harness.wait_for(lambda: os.path.exists("/proc/%d/wchan" % program.pid) and
                         harness.at_rest(program.pid, 2) is None, 30, "its call")
        program.process.kill()
        program.process.wait()
        profile, said = ended(process)
        by_api = sums(profile, "api")
        assert by_api["cuLaunchKernel", ][CALLS] == 100, (by_api, said)
        calls, *others = by_api["cuStreamSynchronize", ]
        assert calls == 1 and not any(others), (by_api, said)


def test_a_call_of_runtime_and_driver_counts_once():
    with target("runtime", env={"ALONE": runtime_alone()}) as program:
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
        truth = program.read("truth.json")
        profile, said = ended(process)
        by_api = sums(profile, "api")
        assert by_api["cudaLaunchKernel", ][CALLS] == 200, (by_api, said)
        copies = {api: (direction, stream, values[CALLS], values[BYTES])
                  for (api, direction, stream), values in
                  sums(profile, "api", "direction", "stream").items() if "cudaMemcpy" in api}
        assert copies == {
            "cudaMemcpy2D": ("HtoD", "", 3, 3 * 1200),
            "cudaMemcpy2DAsync": ("HtoD", "0x5000", 3, 3 * 3000),
            "cudaMemcpy3D": ("DtoH", "", 3, 3 * 60000),
            "cudaMemcpy3DAsync": ("DtoH", "0x5000", 3, 3 * 60000),
            "cudaMemcpyToSymbol": ("HtoD", "", 3, 3 * 77),
            "cudaMemcpyFromSymbolAsync": ("DtoH", "0x5000", 3, 3 * 99)}, copies
        assert truth["api"]["cuLaunchKernel"]["calls"] == 300, truth["api"]
        assert by_api["cuLaunchKernel", ][CALLS] == 300, (by_api, said)


# ---------------------------------------------------------------- nobody asks for it

def of_store(out):
    """All windows' profiles of kind cuda, as one, and the rows of kind cuda_calls."""
    profiles, records = [[harness.load(path) for path in
                          sorted(glob.glob(os.path.join(out, "*", "*", "*-%s.pb.gz" % kind)))]
                         for kind in ("cuda", "cuda_calls")]
    assert all([tuple(t) for t in one.sample_types] == TYPES for one in profiles), profiles
    return types.SimpleNamespace(
        samples=[s for one in profiles for s in one.samples],
        totals=[(s.labels, dict(zip([name for name, _ in one.sample_types], s.values)))
                for one in records for s in one.samples])


def started_by_default(pid=None):
    test_probes.need_links()
    return harness.start(os.path.join(harness.temporary(), "store/"), pid, hz=None,
                         options=["--live", "no"])


def ended_by_default(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return of_store(run.out), run.err


def await_driver(process):
    """The links of the stand-in of libcuda, of all that a run of all kinds may have."""
    driver = os.path.join(os.path.realpath(harness.need_fakes()), "libcuda.so.1")

    def places():
        assert process.poll() is None, harness.said(process)
        return sum(count for _, path, count in test_probes.links(process) if path == driver)
    harness.wait_for(lambda: places() >= 10, 60, "probes of %s" % driver)
    settle(places)


def bpf_of(process):
    """name -> bytes, of maps, and the names of programs that a process has open"""
    harness.need(shutil.which("bpftool"), "no bpftool")
    maps, programs = {}, set()
    for told in harness.fdinfos(process):
        if "map_id" in told:
            maps[int(told["map_id"])] = int(told["memlock"])
        elif "prog_id" in told:
            programs.add(int(told["prog_id"]))

    def names(what):
        listed = json.loads(subprocess.run(["bpftool", "-j", what, "list"], check=True,
                                           stdout=subprocess.PIPE).stdout)
        return {one["id"]: one.get("name", "") for one in listed}
    of_maps, of_programs = names("map"), names("prog")
    return ({of_maps.get(number, ""): size for number, size in maps.items()},
            {of_programs.get(number, "") for number in programs})


def of_cuda(names):
    return {name for name in names if "cuda" in name}


def test_a_default_run_counts_programs_that_are_older_and_younger():
    with target("calls") as older:
        process = started_by_default()
        await_driver(process)
        truth = {older.pid: go(older)}
        with target("calls") as younger:
            time.sleep(0.5)  # its own links, where its file system takes such
            truth[younger.pid] = go(younger)
            profile, said = ended_by_default(process)
    for pid, one in truth.items():
        agrees(profile, one, said, pid)
        assert one["api"]["cuLaunchKernel"]["calls"] > 3000, one["api"]
    told = {labels.get("pid") for labels, values in profile.totals if values["exact_calls"]}
    assert truth.keys() <= told, (truth.keys(), told)


# A neighbour's stand-ins would be counted, too, and share its budget for stacks.
test_a_default_run_counts_programs_that_are_older_and_younger.alone = True


def test_a_default_run_loads_nothing_beside_programs_without_cuda():
    with harness.light() as other:
        process = started_by_default(other.pid)
        harness.sampling(process)
        time.sleep(1.5)  # some ticks
        maps, programs = bpf_of(process)
        assert "gpu_waits" in maps and "on_cpu_sample" in programs, (maps, programs)
        assert not of_cuda(maps) and not of_cuda(programs), (maps, programs)
        # What samples look at of programs with CUDA: empty buckets.
        assert maps["gpu_waits"] + maps["gpu_processes"] < 64 << 10, maps
        names = set()
        for child in harness.children(process.pid):
            with open("/proc/%d/comm" % child, encoding="ascii") as file:
                names.add(file.read().strip())
        assert "pyprofd: gauges" not in names, names
        profile, said = ended_by_default(process)
        assert not profile.samples and "cuda" not in said, said
    with target("calls") as program:
        process = started_by_default(program.pid)
        await_driver(process)
        maps, programs = bpf_of(process)
        assert "cuda_totals" in maps and of_cuda(programs), (maps, programs)
        ended_by_default(process)


# ---------------------------------------------------------------- harm

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
