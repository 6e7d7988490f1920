# SPDX-License-Identifier: BSD-2-Clause
"""The stand-ins of CUDA's libraries: what they count is what was done, and what others find in
their files is what they find in CUDA's."""
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import harness

sys.path.insert(0, os.path.join(harness.TOP, "tests", "fakes"))
import fakecuda  # noqa: E402

ADD = "_Z3addPfi"
MS = 1000000  # ns
X86 = os.uname().machine == "x86_64"


def cuda(**options):
    return fakecuda.Cuda(harness.need_fakes(), **options)


def fails(code, function, *arguments):
    try:
        function(*arguments)
    except fakecuda.CudaError as error:
        assert error.code == code, error
        return
    raise AssertionError("no error %d" % code)


# ---------------------------------------------------------------- counters

def test_launches_are_counted_by_entry_point_and_kernel():
    c = cuda()
    add, other = c.kernel(ADD), c.kernel("_Z5otherPf", by="module")
    apis = ["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel"]
    for number, api in enumerate(apis):
        for _ in range(number + 1):
            c.launch(add, grid=(2, 3, 1), block=(4, 1, 1), api=api)
    c.launch(other, api="cuLaunchCooperativeKernel_ptsz")
    c.synchronize()
    truth = c.truth()
    assert [truth["api"][api]["calls"] for api in apis] == [1, 2, 3, 4, 6], truth["api"]
    assert [truth["api"][api]["executed"] for api in apis] == [1, 2, 3, 4, 6], truth["api"]
    assert truth["kernels"][ADD] == {"calls": 15, "captured": 0, "executed": 15, "in_graphs": 0,
                                     "threads": 15 * 24, "ns": 0}, truth["kernels"]
    assert c.kernel_count("_Z5otherPf", "executed") == 1
    c.reset()
    assert c.count("cuLaunchKernel") == 0 and c.kernel_count(ADD, "threads") == 0


def test_copies_are_counted_by_direction():
    c = cuda()
    stream = c.stream()
    for number, direction in enumerate(("htod", "dtoh", "dtod")):
        c.copy(direction, 1000 << number)
        c.copy(direction, 100 << number, stream)
        c.call("cuMemcpyAsync", *[fakecuda.HOST if name == "h" else fakecuda.DEVICE
                                  for name in (direction[3], direction[0])], 7, stream)
    flat = fakecuda.Copy2D(src_type=1, dst_type=2, width_bytes=10, height=20)
    c.call("cuMemcpy2D_v2", ctypes.byref(flat))
    deep = fakecuda.Copy3D(src_type=2, dst_type=1, width_bytes=10, height=20, depth=30)
    c.call("cuMemcpy3DAsync_v2", ctypes.byref(deep), stream)
    c.call("cuMemcpyPeerAsync", fakecuda.DEVICE, None, fakecuda.DEVICE, None, 50, stream)
    sizes = (ctypes.c_size_t * 3)(1, 2, 3)
    places = (ctypes.c_uint64 * 3)(*[fakecuda.DEVICE] * 3)
    c.call("cuMemcpyBatchAsync_v2", places, places, sizes, 3, None, None, 0, stream)
    c.call("cuMemsetD32Async", fakecuda.DEVICE, 1, 100, stream)
    c.call("cuMemsetD2D8Async", fakecuda.DEVICE, 64, 1, 5, 7, stream)
    c.synchronize()
    got = {name: (row["count"], row["bytes"]) for name, row in c.truth()["copies"].items()}
    assert got == {"htod": (4, 1307), "dtoh": (4, 2207 + 6000), "dtod": (4, 4407 + 6),
                   "ptop": (1, 50), "htoh": (0, 0), "memset": (2, 435)}, got
    assert c.count("cuMemcpyHtoD_v2", "bytes") == 1000
    assert c.total("dtoh_bytes") == 8207


def test_memory_is_counted_until_it_is_freed():
    c = cuda()
    first, second = c.allocate(1 << 30), c.allocate(1000)
    assert c.total("live_bytes") == (1 << 30) + 1000
    c.free(first)
    assert (c.total("live_bytes"), c.total("peak_bytes")) == (1000, (1 << 30) + 1000)
    fails(1, c.free, first)
    fails(2, c.allocate, 80 << 30)
    host = c.get("cuMemHostAlloc", 4096, 0)
    ctypes.memset(host, 1, 4096)
    assert c.total("live_host_bytes") == 4096
    c.call("cuMemFreeHost", host)
    c.free(second)
    assert c.total("live_host_bytes") == c.total("live_bytes") == 0


def test_threads_lose_no_launch_and_no_argument():
    program = os.path.join(harness.need_fakes(), "launches")
    for options in (["64", "20000"], ["-c", "4", "0"], ["-k", "2", "0"]):
        said = subprocess.run([program] + options + ["0.3"], check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        text = said.stdout.decode()
        assert said.returncode == 0 and "arguments ok" in text, text
        assert int(text.split()[0]) > 1000, text


# ---------------------------------------------------------------- time

def test_synchronizations_wait_for_what_was_launched():
    c = cuda()
    kernel, stream, event = c.kernel(ADD, ns=300 * MS), c.stream(), c.event()
    waits = [("cuStreamSynchronize", lambda: c.synchronize(stream)),
             ("cuCtxSynchronize", c.synchronize),
             ("cuEventSynchronize", lambda: c.call("cuEventSynchronize", event))]
    for api, wait in waits:
        began = time.monotonic()
        c.launch(kernel, stream=stream)
        c.call("cuEventRecord", event, stream)
        launched = time.monotonic() - began
        fails(600, c.call, "cuEventQuery", event)
        wait()
        waited = time.monotonic() - began
        assert launched < 0.25 and waited >= 0.3, (api, launched, waited)
        assert (waited - launched) * 1e9 >= c.count(api, "wait_ns") > 0, api
        c.call("cuEventQuery", event)
    assert c.kernel_count(ADD, "ns") == 900 * MS


def test_a_sync_copy_waits_and_takes_its_time():
    c = cuda()
    c.set_copy(latency_ns=50 * MS, bytes_per_us=1)
    c.launch(c.kernel(ADD, ns=50 * MS))
    began = time.monotonic()
    c.copy("dtoh", 50000)  # 50 ms more
    assert time.monotonic() - began >= 0.1
    assert c.count("cuMemcpyDtoH_v2", "wait_ns") >= 100 * MS


def test_streams_run_beside_each_other_and_wait_for_events():
    c = cuda()
    kernel, event = c.kernel(ADD, ns=300 * MS), c.event()
    first, second, third = c.stream(), c.stream(), c.stream()
    began = time.monotonic()
    c.launch(kernel, stream=first)
    c.call("cuEventRecord", event, first)
    c.launch(kernel, stream=second)
    c.call("cuStreamWaitEvent", third, event, 0)
    c.launch(kernel, stream=third)
    c.synchronize(first)
    c.synchronize(second)
    assert 0.3 <= time.monotonic() - began < 0.6
    c.synchronize(third)
    assert time.monotonic() - began >= 0.6


def test_stream_0_of_the_twins_is_the_threads_own():
    c = cuda()
    c.launch(c.kernel(ADD, ns=500 * MS), api="cuLaunchKernel_ptsz")
    began = time.monotonic()
    c.synchronize(0)
    assert time.monotonic() - began < 0.4
    other = threading.Thread(target=lambda: (c.use(0), c.call("cuStreamSynchronize_ptsz", 0)))
    other.start()
    other.join()
    assert time.monotonic() - began < 0.4
    c.call("cuStreamSynchronize_ptsz", 0)
    assert time.monotonic() - began > 0.4


def test_events_know_how_far_apart_they_were_complete():
    c = cuda()
    kernel, stream = c.kernel(ADD, ns=30 * MS), c.stream()
    events = [c.event() for _ in range(3)]
    c.call("cuEventRecord", events[0], stream)
    c.launch(kernel, stream=stream)
    c.launch(kernel, stream=stream)
    c.call("cuEventRecord", events[1], stream)
    fails(600, c.call, "cuEventElapsedTime", ctypes.byref(ctypes.c_float()), events[0], events[1])
    c.synchronize(stream)
    time.sleep(0.05)
    c.call("cuEventRecord", events[2], stream)
    apart = c.get("cuEventElapsedTime", events[0], events[1], kind=ctypes.c_float)
    assert 60 <= apart < 90, apart
    apart = c.get("cuEventElapsedTime", events[1], events[2], kind=ctypes.c_float)
    assert 50 <= apart < 90, apart


PTX = b"""
.version 6.0
.target sm_50
.visible .entry spins(.param .u64 ns, .param .u64 end)
{
	mov.u64 %begin, %globaltimer;
}
.visible .entry does_nothing(.param .u64 a)
{
	ret;
}
"""


def test_kernels_of_ptx_are_those_in_the_text_and_some_spin():
    c = cuda()
    fails(218, c.get, "cuModuleLoadData", b".version 6.0\n")
    module = c.get("cuModuleLoadData", PTX)
    fails(500, c.get, "cuModuleGetFunction", module, b"spin")
    spins = c.get("cuModuleGetFunction", module, b"spins")
    nothing = c.get("cuModuleGetFunction", module, b"does_nothing")
    values = [ctypes.c_uint64(40 * MS), ctypes.c_uint64(0)]
    params = (ctypes.c_void_p * 2)(*[ctypes.addressof(value) for value in values])
    for function in (spins, nothing):
        c.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, params, None)
    began = time.monotonic()
    c.synchronize()
    assert time.monotonic() - began < 10
    assert c.kernel_count("spins", "ns") == 40 * MS and c.kernel_count("does_nothing", "ns") == 0


def test_a_full_queue_makes_launches_wait():
    c = cuda()
    kernel, stream = c.kernel(ADD, ns=MS // 10), c.stream()
    began = time.monotonic()
    for _ in range(2048):
        c.launch(kernel, stream=stream)
    assert time.monotonic() - began >= 0.1 and c.total("queue_full") > 0
    c.synchronize(stream)
    assert time.monotonic() - began >= 0.2
    assert c.kernel_count(ADD, "executed") == 2048


# ---------------------------------------------------------------- graphs

def test_captured_launches_do_not_run():
    c = cuda()
    kernel, stream = c.kernel(ADD, ns=100 * MS), c.stream()
    began = time.monotonic()
    with c.capture(stream) as graph:
        for _ in range(5):
            c.launch(kernel, stream=stream)
        c.copy("htod", 1000, stream)
    c.synchronize()
    assert time.monotonic() - began < 0.4
    row = c.truth()["kernels"][ADD]
    assert (row["calls"], row["captured"], row["executed"]) == (5, 5, 0), row
    assert c.total("htod_captured_bytes") == 1000 and c.total("htod_bytes") == 0
    assert c.count("cuMemcpyHtoDAsync_v2", "captured_bytes") == 1000
    instance = c.instantiate(graph)
    c.call("cuGraphDestroy", graph)
    began = time.monotonic()
    c.graph_launch(instance, stream)
    c.synchronize(stream)
    assert time.monotonic() - began >= 0.5
    c.set_kernel_ns(ADD, 0)
    row = c.truth()["kernels"][ADD]
    assert (row["executed"], row["in_graphs"], row["ns"]) == (5, 5, 500 * MS), row
    assert c.total("htod_bytes") == 1000 and c.total("graph_launches") == 1
    assert c.count("cuGraphLaunch", "executed") == 1


def test_a_synchronization_makes_a_capture_invalid():
    c = cuda()
    kernel, stream = c.kernel(ADD), c.stream()
    c.call("cuStreamBeginCapture_v2", stream, 0)
    c.launch(kernel, stream=stream)
    fails(900, c.synchronize, stream)
    fails(900, c.synchronize)
    fails(901, c.launch, kernel, (1, 1, 1), (32, 1, 1), stream)
    graph = ctypes.c_void_p()
    fails(901, c.call, "cuStreamEndCapture", stream, ctypes.byref(graph))
    assert not graph.value
    c.launch(kernel, stream=stream)
    assert (c.count("cuLaunchKernel", "captured"), c.count("cuLaunchKernel", "errors"),
            c.count("cuLaunchKernel", "executed")) == (1, 1, 1)


def test_graphs_are_built_by_hand():
    c = cuda()
    kernel, child = c.kernel(ADD), c.graph()
    node = fakecuda.KernelNode(kernel, (1, 1, 1), (32, 1, 1))
    copied = fakecuda.Copy3D(src_type=1, dst_type=2, width_bytes=10, height=20, depth=3)
    fill = fakecuda.FillNode(fakecuda.DEVICE, 0, 0, 4, 25, 2)
    c.add("cuGraphAddKernelNode_v2", child, node)
    c.add("cuGraphAddMemcpyNode", child, copied, None)
    c.add("cuGraphAddMemsetNode", child, fill, None)
    graph = c.get("cuGraphClone", child)
    c.add("cuGraphAddChildGraphNode", graph, child)
    for name, of in (("kernel", node), ("copy", fakecuda.CopyNode(copy=copied)), ("fill", fill),
                     ("graph", child)):
        c.add("cuGraphAddNode_v2", graph, fakecuda.NodeParams(
            type=fakecuda.NODES[name], of=fakecuda.AnyNode(**{name: of})))
    stream = c.stream()
    with c.capture(stream, into=graph) as same:
        c.launch(kernel, stream=stream)
    assert same.value == graph
    instance = c.instantiate(graph)
    c.graph_launch(instance, stream)
    assert c.kernel_count(ADD, "in_graphs") == 5
    assert (c.total("htod_bytes"), c.total("memset_bytes")) == (4 * 600, 4 * 200)
    fails(1, c.call, "cuGraphExecUpdate_v2", instance, child, None)
    c.call("cuGraphExecUpdate_v2", instance, graph, None)
    c.graph_launch(instance, stream)
    assert c.kernel_count(ADD, "in_graphs") == 10


def test_a_context_of_its_own_is_current():
    c = cuda()
    before = c.get("cuCtxGetCurrent")
    context = c.get("cuCtxCreate_v4", None, 0, 1)
    device = ctypes.c_int()
    c.call("cuCtxGetDevice", ctypes.byref(device))
    assert device.value == 1 and c.get("cuCtxGetCurrent") == context
    c.launch(c.kernel(ADD))
    assert c.get("cuCtxPopCurrent_v2") == context and c.get("cuCtxGetCurrent") == before
    c.call("cuCtxDestroy_v2", context)
    fails(201, c.call, "cuCtxDestroy_v2", before)


def test_an_event_takes_another_stream_into_the_capture():
    c = cuda()
    kernel, first, second, event = c.kernel(ADD), c.stream(), c.stream(), c.event()
    with c.capture(first) as graph:
        c.call("cuEventRecord", event, first)
        c.call("cuStreamWaitEvent", second, event, 0)
        c.launch(kernel, stream=second)
        c.launch(kernel, stream=c.stream())
        status = ctypes.c_int()
        c.call("cuStreamIsCapturing", second, ctypes.byref(status))
        assert status.value == 1
        c.call("cuEventRecord", event, second)
        c.call("cuStreamWaitEvent", first, event, 0)
    assert (c.kernel_count(ADD, "captured"), c.kernel_count(ADD, "executed")) == (1, 1)
    c.launch(kernel, stream=second)
    c.graph_launch(c.instantiate(graph))
    assert (c.kernel_count(ADD, "captured"), c.kernel_count(ADD, "executed")) == (1, 3)
    fails(900, c.call, "cuStreamBeginCapture_v2", None, 0)
    fails(401, c.call, "cuStreamEndCapture", first, ctypes.byref(graph))


# ---------------------------------------------------------------- drained intervals

def timed(function, *arguments):
    """Before and after it, in ns."""
    before = time.monotonic_ns()
    function(*arguments)
    return before, time.monotonic_ns()


def assert_within(found, expected):
    """Intervals that begin and end while the calls lasted that begin and end them."""
    assert len(found) == len(expected), (found, expected)
    for (begin, end), (began_by, ended_by) in zip(found, expected):
        assert began_by[0] <= begin <= began_by[1], (found, expected)
        if ended_by is None:
            assert end is None, (found, expected)
        else:
            assert ended_by[0] <= end <= ended_by[1], (found, expected)


def test_drained_intervals_lie_between_synchronizations_and_launches():
    c = cuda()
    kernel, slow = c.kernel(ADD, ns=5 * MS), c.kernel("_Z4slowPf", ns=200 * MS)
    first, second = c.stream(), c.stream()
    expected = []
    for work in (lambda: c.launch(kernel, stream=first), lambda: c.copy("htod", 10, first)):
        c.launch(kernel, stream=first)
        c.launch(slow, stream=second)
        c.synchronize(first)  # the second one has work
        ended = timed(c.synchronize, second)
        c.copy("htod", 10)  # a sync copy leaves nothing queued
        c.synchronize()
        time.sleep(0.01)
        expected.append((ended, timed(work)))
        ended = timed(c.synchronize)
        time.sleep(0.01)
        expected.append((ended, timed(c.launch, kernel, (1, 1, 1), (32, 1, 1), second)))
        c.synchronize(second)
    truth = c.truth()
    last = truth["drained"].pop()
    assert last[1] is None and truth["proven"].pop()[1] is None
    between = truth["drained"].pop(2), truth["proven"].pop(2)  # of the two rounds
    assert between[0][1] - between[0][0] < 1000 * MS
    assert_within(truth["drained"], expected)
    assert_within(truth["proven"], expected)


def test_drained_by_an_event_is_not_proven():
    c = cuda()
    kernel, stream, event = c.kernel(ADD, ns=20 * MS), c.stream(), c.event()
    c.launch(kernel, stream=stream)
    c.call("cuEventRecord", event, stream)
    drained = timed(c.call, "cuEventSynchronize", event)
    assert_within(c.truth()["drained"], [(drained, None)])
    assert not c.truth()["proven"]
    proven = timed(c.synchronize, stream)
    launched = timed(c.launch, kernel, (1, 1, 1), (32, 1, 1), stream)
    truth = c.truth()
    assert_within(truth["drained"], [(drained, launched)])
    assert_within(truth["proven"], [(proven, launched)])


def test_captured_work_ends_no_drained_interval():
    c = cuda()
    kernel, stream = c.kernel(ADD), c.stream()
    c.launch(kernel, stream=stream)
    drained = timed(c.synchronize, stream)
    with c.capture(stream) as graph:
        c.launch(kernel, stream=stream)
    launched = timed(c.graph_launch, c.instantiate(graph), stream)
    assert_within(c.truth()["drained"], [(drained, launched)])


# ---------------------------------------------------------------- errors, devices, handles

def test_errors_are_returned_and_counted():
    c = cuda()
    kernel = c.kernel(ADD)
    c.next_error("cuLaunchKernel", 719, times=2)
    fails(719, c.launch, kernel)
    fails(719, c.launch, kernel)
    c.launch(kernel)
    fails(400, c.launch, None)
    fails(1, c.launch, kernel, (0, 1, 1))
    fails(500, c.kernel, "missing_one")
    assert (c.count("cuLaunchKernel"), c.count("cuLaunchKernel", "errors")) == (5, 4)
    assert c.kernel_count(ADD) == 1
    c.set_call_ns("cuMemAlloc_v2", 20 * MS)
    began = time.monotonic()
    c.allocate(100)
    assert time.monotonic() - began >= 0.02
    assert c.driver.fake_cuda_next_error(b"cuNothing", 1, 1) < 0


def test_nothing_works_before_init_and_after_fork():
    c = cuda(init=False)
    fails(3, c.use, 0)
    c.call("cuInit", 0)
    fails(201, c.stream)
    c.use(0)
    c.launch(c.kernel(ADD, ns=MS))
    pid = os.fork()
    if not pid:
        try:
            fails(3, c.synchronize)
            fails(3, c.call, "cuInit", 0)
            assert c.count("cuCtxSynchronize", "errors") == 1 and c.kernel_count(ADD) == 0
        except BaseException:  # pylint: disable=broad-except
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    c.synchronize()


def test_each_device_has_one_context():
    os.environ.update(FAKE_CUDA_DEVICES="4", CUDA_VISIBLE_DEVICES="2,1,9,0")
    c = cuda()
    assert c.get("cuDeviceGetCount", kind=ctypes.c_int) == 2
    assert c.get("cuDevicePrimaryCtxRetain", 0) == c.contexts[0]
    c.use(1)
    assert c.contexts[0] != c.contexts[1] == c.get("cuCtxGetCurrent")
    assert c.get("cuCtxGetDevice", kind=ctypes.c_int) == 1
    uuid = (ctypes.c_ubyte * 16)()
    c.call("cuDeviceGetUuid_v2", uuid, 0)
    assert bytes(uuid) == b"FAKE" + bytes(11) + b"\2"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(c.get("cuCtxGetCurrent")))
    thread.start()
    thread.join()
    assert seen == [None]
    fails(101, c.use, 2)
    on_second = c.stream()
    c.use(0)
    c.launch(c.kernel(ADD, ns=500 * MS), stream=on_second)
    began = time.monotonic()
    c.synchronize()  # of the other device
    assert time.monotonic() - began < 0.4
    c.call("cuCtxSynchronize_v2", c.contexts[1])
    assert time.monotonic() - began >= 0.4


def test_handles_are_made_when_asked_for_and_given_out_again():
    c = cuda()
    library = c.get("cuLibraryLoadData", b"", None, None, 0, None, None, 0)
    kernel = c.get("cuLibraryGetKernel", library, b"_Z1av")
    assert kernel == c.get("cuLibraryGetKernel", library, b"_Z1av")
    assert list(c.truth()["handles"].values()) == ["_Z1av"]
    function = c.get("cuKernelGetFunction", kernel)
    assert function != kernel and function == c.get("cuKernelGetFunction", kernel)
    assert sorted(c.truth()["handles"].values()) == ["_Z1av"] * 2
    c.launch(kernel)
    c.launch(function)
    assert c.kernel_count("_Z1av") == 2
    assert ctypes.string_at(c.get("cuFuncGetName", function)) == b"_Z1av"
    c.call("cuLibraryUnload", library)
    module = c.get("cuModuleLoadData", b"")
    again = c.get("cuModuleGetFunction", module, b"_Z1bv")
    assert again in (kernel, function)
    c.launch(again)
    assert c.kernel_count("_Z1bv") == 1


def test_the_truth_is_written_when_the_process_ends():
    folder = harness.temporary()
    program = ("import os, fakecuda\nc = fakecuda.Cuda()\nc.launch(c.kernel('_Z1av'))\n"
               "if not os.fork():\n    c.driver.cuCtxSynchronize()\n    raise SystemExit\n"
               "os.wait()\n")
    environment = dict(os.environ, FAKES=harness.need_fakes(), PYTHONDONTWRITEBYTECODE="1",
                       PYTHONPATH=os.path.join(harness.TOP, "tests", "fakes"))
    for name in ("truth", "truth.%p"):
        environment["FAKE_CUDA_TRUTH"] = os.path.join(folder, name)
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    files = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            files[name] = json.load(file)
    assert len(files) == 3 and files["truth"]["kernels"]["_Z1av"]["calls"] == 1, files
    child, = [truth for truth in files.values() if truth["is_forked"]]
    assert child["api"]["cuCtxSynchronize"]["errors"] == 1, child
    assert child["kernels"]["_Z1av"]["calls"] == 0, child
    shutil.rmtree(folder)


def python_cases():
    return [(i.label, i) for i in harness.interpreters() if i.version >= (3, 8) and not i.root]


def test_the_module_runs_on_each_python(python):
    program = ("import fakecuda\nc = fakecuda.Cuda()\ns = c.stream()\n"
               "with c.capture(s) as graph:\n    c.launch(c.kernel('_Z1av'), stream=s)\n"
               "c.graph_launch(c.instantiate(graph), s)\nc.copy('htod', 5, s)\nc.synchronize(s)\n"
               "c.run('matmul', 3, s)\nprint(c.truth()['kernels']['_Z1av']['executed'],\n"
               "      c.kernel_count(fakecuda.KERNELS['matmul']))\n")
    environment = dict(os.environ, FAKES=harness.need_fakes(), PYTHONDONTWRITEBYTECODE="1",
                       PYTHONPATH=os.path.join(harness.TOP, "tests", "fakes"))
    said = subprocess.check_output(python.command + ["-c", program], env=environment)
    assert said.split() == [b"1", b"3"], said


test_the_module_runs_on_each_python.cases = python_cases
test_the_module_runs_on_each_python.few = harness.ends


# ---------------------------------------------------------------- cudart, kernels

def runtime_cases():
    return [(name or "base", (variant, cudart, kernels)) for name, variant, cudart, kernels in (
        ("13", "", "libcudart.so.13", "libfakekernels.so"),
        ("12", "", "libcudart.so.12", "libfakekernels12.so"),
        ("hashed", "", "libcudart.abc123.so.13", "libfakekernels.abc123.so"),
        ("stripped", "stripped", "libcudart.so.13", "libfakekernels.so"),
        ("endbr", "endbr", "libcudart.so.13", "libfakekernels.so"),
        ("nofp", "nofp", "libcudart.so.13", "libfakekernels.so"))]


def test_cudart_reaches_the_driver(way):
    harness.need_fakes(way[0])
    c = fakecuda.Cuda(harness.need_fakes(), variant=way[0], cudart=way[1], kernels=way[2])
    for number, name in enumerate(fakecuda.KERNELS):
        c.run(name, number + 1, grid=2)
    stream = c.get_runtime("cudaStreamCreate")
    pointer = c.get_runtime("cudaMalloc", 100)
    c.call_runtime("cudaMemcpy", pointer, 0x1000, 100, 1)
    c.call_runtime("cudaMemcpyAsync", 0x1000, pointer, 50, 4, stream)
    c.call_runtime("cudaMemcpy2D", pointer, 10, 0x1000, 10, 10, 2, 1)
    c.call_runtime("cudaMemcpy3D", ctypes.byref(fakecuda.RuntimeCopy3D(
        width=10, height=3, depth=1, kind=2)))
    c.call_runtime("cudaMemcpyToSymbol", pointer, 0x1000, 5, 0, 1)
    c.call_runtime("cudaStreamBeginCapture", stream, 0)
    c.run("matmul", 2, stream)
    graph = ctypes.c_void_p()
    c.call_runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
    instance = c.get_runtime("cudaGraphInstantiate", graph, 0)
    c.call_runtime("cudaGraphLaunch", instance, stream)
    c.call_runtime("cudaStreamSynchronize", stream)
    c.call_runtime("cudaDeviceSynchronize")
    c.call_runtime("cudaFree", pointer)
    calls = [c.kernel_count(name) for name in fakecuda.KERNELS.values()]
    assert calls == [1, 4, 3, 4, 5], calls
    # 13's stubs launch the handle that they asked for, 12's their own address.
    assert c.count("cuKernelGetFunction") == (5 if way[1].endswith(".12") else 0)
    assert c.count("cuLaunchKernel") == 17 and c.count("cuLaunchKernel", "captured") == 2
    assert (c.total("htod_bytes"), c.total("dtoh_bytes")) == (125, 80)
    assert c.kernel_count(fakecuda.KERNELS["matmul"], "in_graphs") == 2
    c.next_error("cuLaunchKernel", 700)
    fails(700, c.run, "softmax")
    c.run("softmax")


test_cudart_reaches_the_driver.cases = runtime_cases


def test_cudart_in_another_library_launches_too():
    c = cuda()
    blas = ctypes.CDLL(os.path.join(c.directory, "libfakeblas.so"))
    assert not blas.fakeblas_sgemm(256, 128, 64, ctypes.c_void_p())
    c.run("matmul")
    assert c.kernel_count("_ZN8fakeblas12sgemm_128x64EPKfS1_Pfiii", "threads") == 4 * 256
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "libcudart.so.13" in maps.read()


# ---------------------------------------------------------------- what is in the files

def read(*command):
    harness.need(shutil.which(command[0]), "no " + command[0])
    return subprocess.check_output(command, env=dict(os.environ, LC_ALL="C")).decode()


def dynamic_symbols(path):
    """Name with its version: address, of the defined ones."""
    rows = [line.split() for line in read("readelf", "-W", "--dyn-syms", path).split("\n")]
    return {row[7]: int(row[1], 16) for row in rows
            if len(row) >= 8 and row[3] == "FUNC" and row[6] not in ("UND", "Ndx")}


def first_instructions(path, name):
    text = read("objdump", "-d", "--no-show-raw-insn", "--disassemble=" + name, path)
    lines = re.search(r"<%s(?:@@[^>]*)?>:\n((?:.+\n){1,4})" % re.escape(name), text).group(1)
    return [re.sub(r"\s+", " ", line.split(":", 1)[1]).strip() for line in lines.splitlines()]


def test_files_have_the_names_of_cudas():
    path = harness.need_fakes()
    for name, soname in (("libcuda.so.1", 0), ("libcudart.so.12", 0), ("libcudart.so.13", 0),
                         ("libcudart.abc123.so.13", 0), ("libnvidia-ml.so.1", 0),
                         ("libnccl.so.2", 0), ("stripped/libcudart.so.13", "libcudart.so.13")):
        text = read("readelf", "-d", os.path.join(path, name))
        assert "Library soname: [%s]" % (soname or name) in text, text
    for major, name in ((12, "libcudart.so.12"), (13, "libcudart.so.13"),
                        (13, "libcudart.abc123.so.13")):
        symbols = dynamic_symbols(os.path.join(path, name))
        assert len(symbols) > 50
        assert all(s.endswith("@@libcudart.so.%d" % major) for s in symbols), symbols
        assert "cudaLaunchKernel@@libcudart.so.%d" % major in symbols
    for name, needed in (("libfakekernels.so", "libcudart.so.13"),
                         ("libfakekernels12.so", "libcudart.so.12"),
                         ("libfakekernels.abc123.so", "libcudart.abc123.so.13")):
        assert "[%s]" % needed in read("readelf", "-d", os.path.join(path, name))


def test_twins_have_two_addresses_and_aliases_one():
    symbols = dynamic_symbols(os.path.join(harness.need_fakes(), "libcuda.so.1"))
    for name in ("cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch", "cuStreamSynchronize",
                 "cuMemcpyHtoDAsync_v2"):
        assert symbols[name] != symbols[name + "_ptsz"], name
    assert symbols["cuLaunchCooperativeKernel"] == symbols["cuLaunchCooperativeKernel_ptsz"]
    c = cuda()
    for name, flags, symbol in (("cuLaunchKernel", 0, "cuLaunchKernel"),
                                ("cuLaunchKernel", 2, "cuLaunchKernel_ptsz"),
                                ("cuMemAlloc", 0, "cuMemAlloc_v2")):
        found = ctypes.c_void_p()
        c.call("cuGetProcAddress_v2", name.encode(), ctypes.byref(found), 13000, flags, None)
        exported = ctypes.cast(getattr(c.driver, symbol), ctypes.c_void_p)
        assert found.value == exported.value, name


def test_entries_begin_as_each_build_says():
    harness.need(X86, "entries of x86-64")
    path = harness.need_fakes()
    entries = [("libcuda.so.1", name) for name in (
        "cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2",
        "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")]
    entries += [("libcudart.so.13", name) for name in (
        "cudaLaunchKernel", "cudaMemcpy", "cudaStreamSynchronize", "__cudaLaunchKernel")]
    for library, name in entries:
        first = first_instructions(os.path.join(path, library), name)
        assert first[:2] == ["push %rbp", "mov %rsp,%rbp"], (name, first)
        first = first_instructions(os.path.join(path, "endbr", library), name)
        assert first[:2] == ["endbr64", "push %rbp"], (name, first)
    for library, name in entries[:2] + entries[7:8]:
        first = first_instructions(os.path.join(path, "nofp", library), name)
        assert re.match("sub|mov", first[0]), (name, first)
    first = first_instructions(os.path.join(path, "libcudart.so.13"), "__cudaLaunchKernel")
    assert first[2] == "pop %rbp" and re.match("jmp .*<cudaLaunchKernel", first[3]), first


def calls_of(path, name):
    text = read("objdump", "-d", "--no-show-raw-insn", "--disassemble=" + name, path)
    return re.findall(r"\tcall +(\S+)(?: +(?:# \w+ )?<([^+@>]*))?", text)


def test_a_launch_has_cudarts_frames_above_it():
    """At the entry of cuLaunchKernel [rsp] is in the helper, [rbp + 8] in cudaLaunchKernel,
    [[rbp] + 8] in the host stub."""
    harness.need(X86, "instructions of x86-64")
    path = harness.need_fakes()
    cudart = os.path.join(path, "libcudart.so.13")
    assert first_instructions(cudart, "launch")[:2] == ["push %rbp", "mov %rsp,%rbp"]
    calls = calls_of(cudart, "launch")
    assert [slot for to, slot in calls if to.startswith("*")] == ["cudart_slots"], calls
    assert [to for _, to in calls_of(cudart, "cudaLaunchKernel")][0] == "launch"
    for name, to in (("libfakekernels.so", "__cudaLaunchKernel"),
                     ("libfakekernels12.so", "cudaLaunchKernel")):
        library = os.path.join(path, name)
        for stub in ("_Z9vectorAddPKfS0_Pfi", "_ZN4fakeL15nms_kernel_implEPKfi",
                     "_Z35__device_stub__Z11reduce_rowsPKfPfiPKfPfi"):
            assert to in [called for _, called in calls_of(library, stub)], (name, stub)


def test_stubs_have_nvccs_names_in_symtab_alone():
    path = harness.need_fakes()
    for name in ("libfakekernels.so", "libfakekernels12.so"):
        table = read("readelf", "-W", "--symbols", os.path.join(path, name))
        table = table[table.index("'.symtab'"):]
        stubs = {row[7]: row[4] for row in map(str.split, table.split("\n"))
                 if len(row) >= 8 and row[3] == "FUNC"}
        for stub in ("_Z9vectorAddPKfS0_Pfi", "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i",
                     "_ZN4fakeL15nms_kernel_implEPKfi", "_Z11reduce_rowsPKfPfi",
                     "_Z35__device_stub__Z11reduce_rowsPKfPfiPKfPfi",
                     "_ZL25__cudaLaunchKernel_helperPKv4dim3S1_PPvmP11CUstream_st"):
            assert stubs.get(stub) == "LOCAL", (name, stub, stubs)
        exported = dynamic_symbols(os.path.join(path, name))
        assert all(s.startswith("fakekernels_") for s in exported), exported
    for name in ("libfakekernels.so", "libcuda.so.1", "libcudart.so.13"):
        assert ".symtab" not in read("readelf", "-SW", os.path.join(path, "stripped", name))


def test_a_library_with_cudart_in_it_does_not_show_it():
    path = harness.need_fakes()
    for name, prefix in (("libfakeblas.so", "fakeblas_"), ("libnccl.so.2", "(fake_)?nccl")):
        exported = dynamic_symbols(os.path.join(path, name))
        assert exported and all(re.match(prefix, s) for s in exported), exported
        assert "libcudart" not in read("readelf", "-d", os.path.join(path, name))
        with open(os.path.join(path, name), "rb") as file:
            content = file.read()
        assert b"cuGetProcAddress_v2" in content and b"libcuda.so.1" in content


# ---------------------------------------------------------------- NVML, NCCL

class GpmMetric(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("result", ctypes.c_int), ("value", ctypes.c_double),
                ("texts", ctypes.c_void_p * 3)]


class GpmMetrics(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint),
                ("sample1", ctypes.c_void_p), ("sample2", ctypes.c_void_p),
                ("metric", GpmMetric * 333)]


class Nvml:
    """NVML with a file of values."""

    def __init__(self):
        self.path = os.path.join(harness.temporary(), "nvml")
        os.environ["FAKE_NVML"] = self.path
        self.library = ctypes.CDLL(os.path.join(harness.need_fakes(), "libnvidia-ml.so.1"))

    def say(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def device(self, number):
        device = ctypes.c_void_p()
        assert not self.call("nvmlDeviceGetHandleByIndex_v2", number, ctypes.byref(device))
        return device

    def values(self, name, device, count=1, kind=ctypes.c_uint):
        got = (kind * count)()
        assert not self.call(name, device, got), name
        return list(got)


def test_nvml_says_what_stands_in_its_file():
    nvml = Nvml()
    count = ctypes.c_uint()
    assert nvml.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) == 1  # not initialized
    assert nvml.call("nvmlInit_v2") == 0
    assert nvml.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) == 0 and count.value == 2
    nvml.say("devices 3\n1.name H100\n1.utilization 97 40\n1.memory 1000 400\n1.power 350000\n"
             "1.reasons 0x4\n1.process 12 1000 50\n1.process 13 2000 30\n"
             "0.error.nvmlDeviceGetPowerUsage 3\n")
    assert nvml.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) == 0 and count.value == 3
    first, second = nvml.device(0), nvml.device(1)
    name = ctypes.create_string_buffer(96)
    assert nvml.call("nvmlDeviceGetName", second, name, 96) == 0 and name.value == b"H100"
    assert nvml.call("nvmlDeviceGetUUID", second, name, 96) == 0
    assert name.value == b"GPU-46414b45-0000-0000-0000-000000000001", name.value
    assert nvml.values("nvmlDeviceGetUtilizationRates", second, 2) == [97, 40]
    assert nvml.values("nvmlDeviceGetMemoryInfo", second, 3, ctypes.c_uint64) == [1000, 600, 400]
    assert nvml.values("nvmlDeviceGetPowerUsage", second) == [350000]
    assert nvml.call("nvmlDeviceGetPowerUsage", first, ctypes.byref(count)) == 3
    assert nvml.values("nvmlDeviceGetCurrentClocksEventReasons", second, 1,
                       ctypes.c_uint64) == [4]
    rows = (ctypes.c_uint64 * 6)()
    count.value = 0
    assert nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", second, ctypes.byref(count),
                     None) == 7 and count.value == 2
    assert nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", second, ctypes.byref(count),
                     rows) == 0
    assert [rows[0] & 0xffffffff, rows[1], rows[3] & 0xffffffff, rows[4]] == [12, 1000, 13, 2000]


def test_nvml_has_gpm_of_the_metrics_that_are_set():
    nvml = Nvml()
    nvml.say("0.gpm.2 35.5\n1.gpm none\n")
    assert nvml.call("nvmlInit_v2") == 0
    samples = [ctypes.c_void_p(), ctypes.c_void_p()]
    for sample in samples:
        assert not nvml.call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        assert not nvml.call("nvmlGpmSampleGet", nvml.device(0), sample)
    metrics = GpmMetrics(1, 2, *samples)
    metrics.metric[0].id, metrics.metric[1].id = 2, 10
    assert not nvml.call("nvmlGpmMetricsGet", ctypes.byref(metrics))
    assert [(m.result, m.value) for m in metrics.metric[:2]] == [(0, 35.5), (3, 0)]
    assert nvml.call("nvmlGpmSampleGet", nvml.device(1), samples[0]) == 3
    support = (ctypes.c_uint * 2)(1)
    assert not nvml.call("nvmlGpmQueryDeviceSupport", nvml.device(1), support) and not support[1]


def test_nccl_counts_bytes_and_launches_kernels():
    c = cuda()
    nccl = ctypes.CDLL(os.path.join(c.directory, "libnccl.so.2"))
    nccl.fake_nccl_count.restype = ctypes.c_uint64
    comm, none, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t
    identity = (ctypes.c_char * 128)()
    assert nccl.ncclGetUniqueId(identity) == 0
    unique = fakecuda.NcclUniqueId(bytes(identity))
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 8, unique, 3) == 0
    assert nccl.ncclAllReduce(none, none, size(100), 7, 0, comm, none) == 0
    assert nccl.ncclAllGather(none, none, size(10), 9, comm, none) == 0
    assert nccl.ncclGroupStart() == 0
    for _ in range(3):
        assert nccl.ncclSend(none, size(5), 8, 1, comm, none) == 0
        assert nccl.ncclRecv(none, size(5), 8, 1, comm, none) == 0
    assert nccl.ncclGroupEnd() == 0
    assert nccl.ncclAllReduce(none, none, size(100), 99, 0, comm, none) == 4

    def count(name, what):
        return nccl.fake_nccl_count(name.encode(), what.encode())
    assert (count("ncclAllReduce", "calls"), count("ncclAllReduce", "bytes")) == (2, 400)
    assert count("ncclAllGather", "bytes") == 20 and count("ncclSend", "bytes") == 120
    names = [name for name, row in c.truth()["kernels"].items() if row["executed"] == 1]
    assert len(names) == 3 and all("ncclDevKernel_" in name for name in names), names
    assert c.count("cuLaunchKernelEx", "executed") == 3
