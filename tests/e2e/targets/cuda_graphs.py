# SPDX-License-Identifier: BSD-2-Clause
"""cuda_graphs.py MODE [OPTIONS]   As cuda.py: captures of streams, graphs, and handles that are
given out again."""
import ctypes
import os
import threading
import time

import common
import cuda as program
import fakecuda
from fakecuda import DEVICE, HOST

ADD, OTHER, THIRD = "_Z3addPfi", "_Z5otherPf", "_Z5thirdPf"
MS = 1000000


def copies(cuda, stream):
    cuda.copy("htod", 1000, stream)
    cuda.copy("dtoh", 300, stream)
    cuda.call("cuMemsetD32Async", DEVICE, 0, 50, stream)
    block = cuda.get("cuMemAllocAsync", 5000, stream, kind=ctypes.c_uint64)
    cuda.call("cuMemFreeAsync", block, stream)


def fails(code, function, *arguments):
    try:
        function(*arguments)
    except fakecuda.CudaError as error:
        assert error.code == code, error
        return
    raise AssertionError("no error %d" % code)


# ---------------------------------------------------------------- modes

def captures(cuda):
    """Captures by each function, and the graphs' launches."""
    kernel, other, stream = cuda.kernel(ADD), cuda.kernel(OTHER), cuda.stream()
    cuda.launch(kernel, stream=stream)
    with cuda.capture(stream) as graph:
        for _ in range(70):
            cuda.launch(kernel, stream=stream)
        for _ in range(30):
            cuda.launch(other, stream=stream)
        copies(cuda, stream)
    copies(cuda, stream)
    instance = cuda.instantiate(graph)
    for _ in range(20):
        cuda.graph_launch(instance, stream)
    cuda.call("cuGraphExecDestroy", instance)
    cuda.call("cuGraphDestroy", graph)
    # Without a mode; by another capture; into a graph that is there.
    graph = ctypes.c_void_p()
    cuda.call("cuStreamBeginCapture", stream)
    cuda.launch(kernel, stream=stream)
    cuda.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    first = cuda.instantiate(graph)
    with cuda.capture(stream) as outer:
        cuda.graph_launch(first, stream)
        cuda.graph_launch(first, stream)
        cuda.launch(other, stream=stream)
    second = cuda.instantiate(outer)
    with cuda.capture(stream, into=graph.value):
        cuda.launch(kernel, stream=stream)
    third = cuda.instantiate(graph)
    # The stream of the thread.
    cuda.call("cuStreamBeginCapture_v2_ptsz", None, 1)
    cuda.launch(kernel, api="cuLaunchKernel_ptsz")
    cuda.launch(other, stream=2)
    cuda.launch(other)  # the legacy one runs
    cuda.call("cuStreamEndCapture_ptsz", None, ctypes.byref(graph))
    for number, instance in enumerate((first, second, third, cuda.instantiate(graph))):
        for _ in range(1 + number):
            cuda.graph_launch(instance, stream)
    cuda.launch(kernel, stream=stream)
    cuda.launch(kernel, api="cuLaunchKernel_ptsz")
    cuda.synchronize()


def spread(cuda, mode=0):
    """A capture that takes in another stream by an event."""
    kernel, other, third = cuda.kernel(ADD), cuda.kernel(OTHER), cuda.kernel(THIRD)
    first, second, aside, event = cuda.stream(), cuda.stream(), cuda.stream(), cuda.event()
    joined, outside = cuda.event(), cuda.event()

    def work():
        cuda.use(0)
        for _ in range(40):
            cuda.launch(third, stream=second)
        for _ in range(11):
            cuda.launch(third, stream=aside)
    with cuda.capture(first, mode) as graph:
        cuda.launch(kernel, stream=first)
        cuda.call("cuEventRecord", event, first)
        cuda.call("cuStreamWaitEvent", second, event, 0)
        for _ in range(50):
            cuda.launch(other, stream=second)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        # A node that records an event takes nobody along.
        cuda.call("cuEventRecordWithFlags", outside, second, 1)
        cuda.call("cuStreamWaitEvent", aside, outside, 0)
        for _ in range(7):
            cuda.launch(other, stream=aside)
        cuda.call("cuEventRecord", joined, second)
        cuda.call("cuStreamWaitEvent", first, joined, 0)
        cuda.launch(kernel, stream=first)
    for _ in range(9):
        cuda.launch(other, stream=second)
    cuda.call("cuEventRecord", event, second)
    cuda.call("cuStreamWaitEvent", first, event, 0)
    cuda.launch(kernel, stream=first)
    instance = cuda.instantiate(graph)
    for _ in range(3):
        cuda.graph_launch(instance, first)


def spreads(cuda):
    spread(cuda)
    spread(cuda, 2)
    spread(cuda, 1)


def goes_wrong(cuda):
    """Captures that fail, that are never ended, and whose streams go."""
    kernel, stream = cuda.kernel(ADD), cuda.stream()
    graph = ctypes.c_void_p()
    # One that does not begin.
    cuda.next_error("cuStreamBeginCapture_v2", 999)
    fails(999, cuda.call, "cuStreamBeginCapture_v2", stream, 0)
    for _ in range(10):
        cuda.launch(kernel, stream=stream)
    # An end that fails, and does not end it.
    cuda.call("cuStreamBeginCapture_v2", stream, 0)
    cuda.next_error("cuStreamEndCapture", 908)
    fails(908, cuda.call, "cuStreamEndCapture", stream, ctypes.byref(graph))
    cuda.launch(kernel, stream=stream)
    # One that cannot begin, as it is there.
    fails(401, cuda.call, "cuStreamBeginCapture_v2", stream, 0)
    cuda.launch(kernel, stream=stream)
    cuda.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    for _ in range(20):
        cuda.launch(kernel, stream=stream)
    # One that has become invalid ends with an error.
    cuda.call("cuStreamBeginCapture_v2", stream, 0)
    cuda.launch(kernel, stream=stream)
    fails(900, cuda.synchronize, stream)
    fails(901, cuda.call, "cuStreamEndCapture", stream, ctypes.byref(graph))
    fails(401, cuda.call, "cuStreamEndCapture", stream, ctypes.byref(graph))
    for _ in range(40):
        cuda.launch(kernel, stream=stream)
    # One whose thread ends, and one whose stream does.

    def begin():
        cuda.use(0)
        cuda.call("cuStreamBeginCapture_v2", stream, 0)
        cuda.launch(kernel, stream=stream)
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    cuda.launch(kernel, stream=stream)
    cuda.call("cuStreamDestroy_v2", stream)
    other = cuda.stream()
    for _ in range(80):
        cuda.launch(kernel, stream=other)


def built(cuda):
    """Graphs without a capture."""
    kernel, stream = cuda.kernel(ADD), cuda.stream()
    node = fakecuda.KernelNode(kernel, (1, 1, 1), (32, 1, 1))
    copied = fakecuda.Copy3D(src_type=1, dst_type=2, width_bytes=10, height=20, depth=300)
    fill = fakecuda.FillNode(DEVICE, 0, 0, 4, 25, 2)
    child = cuda.graph()
    for _ in range(5):
        cuda.add("cuGraphAddKernelNode_v2", child, node)
    cuda.add("cuGraphAddMemcpyNode", child, copied, None)
    cuda.add("cuGraphAddMemsetNode", child, fill, None)
    cuda.next_error("cuGraphAddKernelNode_v2", 1)
    fails(1, cuda.add, "cuGraphAddKernelNode_v2", child, node)
    graph = cuda.get("cuGraphClone", child)
    cuda.add("cuGraphAddChildGraphNode", graph, child)
    for name, of in (("kernel", node), ("copy", fakecuda.CopyNode(copy=copied)), ("fill", fill),
                     ("graph", child)):
        cuda.add("cuGraphAddNode_v2", graph, fakecuda.NodeParams(
            type=fakecuda.NODES[name], of=fakecuda.AnyNode(**{name: of})))
    with cuda.capture(stream, into=graph):
        cuda.launch(kernel, stream=stream)
        cuda.copy("htod", 111, stream)
    instance = cuda.instantiate(graph)
    for _ in range(10):
        cuda.graph_launch(instance, stream)
    small = cuda.graph()
    cuda.add("cuGraphAddKernelNode_v2", small, node)
    updated = cuda.instantiate(small)
    cuda.graph_launch(updated, stream)
    again = cuda.graph()
    cuda.add("cuGraphAddMemcpyNode", again, copied, None)
    cuda.call("cuGraphExecUpdate_v2", updated, again, None)
    cuda.graph_launch(updated, stream)
    cuda.synchronize()


def unknown(cuda):
    """A graph that was made before anybody looked: `go` comes after that."""
    for _ in range(6):
        cuda.graph_launch(cuda.before, None)


def streams(cuda):
    """Calls for each kind of stream."""
    kernel, first, second = cuda.kernel(ADD), cuda.stream(), cuda.stream()
    for number, (stream, api) in enumerate((
            (None, "cuLaunchKernel"), (1, "cuLaunchKernel"), (2, "cuLaunchKernel"),
            (None, "cuLaunchKernel_ptsz"), (1, "cuLaunchKernel_ptsz"),
            (first, "cuLaunchKernel"), (second, "cuLaunchKernelEx"),
            (None, "cuLaunchKernelEx_ptsz"), (None, "cuLaunchKernelEx"))):
        for _ in range(1 << number):
            cuda.launch(kernel, stream=stream, api=api)
    cuda.copy("htod", 10, first)
    cuda.copy("htod", 20, 0)
    cuda.copy("htod", 40)
    cuda.synchronize(second)
    common.write("streams.json", [first, second])


def unloads(cuda):
    """Handles that are given out again have other names."""
    names = ["_Z%dkernel_%dv" % (8, i) for i in range(6)]
    stays = cuda.kernel("_Z5staysv")
    handles = []
    for number, name in enumerate(names):
        module = cuda.get("cuModuleLoadData", b"")
        kernel = cuda.get("cuModuleGetFunction", module, name.encode())
        handles.append(kernel)
        for _ in range(10 + number):
            cuda.launch(kernel)
        cuda.launch(stays)
        cuda.call("cuModuleUnload", module)
    for number in range(3):
        library = cuda.get("cuLibraryLoadData", b"", None, None, 0, None, None, 0)
        kernel = cuda.get("cuLibraryGetKernel", library, names[number].encode())
        function = cuda.get("cuKernelGetFunction", kernel)
        cuda.launch(kernel)
        cuda.launch(function)
        cuda.call("cuLibraryUnload", library)
    assert len(set(handles)) < len(handles), "no handle was given out again"


def contexts(cuda):
    """The device follows the thread's stack of contexts."""
    kernel = cuda.kernel(ADD)
    cuda.launch(kernel)  # of device 0
    made = cuda.get("cuCtxCreate_v4", None, 0, 1)
    for _ in range(2):
        cuda.launch(kernel)
    second = cuda.get("cuCtxCreate_v2", 0, 2)
    for _ in range(4):
        cuda.launch(kernel)
    cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    for _ in range(8):
        cuda.launch(kernel)  # of device 1 again
    cuda.call("cuCtxPushCurrent_v2", second)
    for _ in range(16):
        cuda.launch(kernel)
    cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    for _ in range(32):
        cuda.launch(kernel)  # of device 0
    cuda.call("cuCtxDestroy_v2", made)
    # One that ends while it is the current one, and one that is put off by choosing none.
    last = cuda.get("cuCtxCreate_v2", 0, 3)
    for _ in range(64):
        cuda.launch(kernel)
    cuda.call("cuCtxDestroy_v2", last)
    for _ in range(128):
        cuda.launch(kernel)  # of device 0
    cuda.call("cuCtxPushCurrent_v2", second)
    cuda.call("cuCtxPushCurrent_v2", second)
    cuda.call("cuCtxSetCurrent", None)
    for _ in range(256):
        cuda.launch(kernel)  # of device 2
    cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def batches(cuda):
    """Copies of which there are several in a call."""
    stream = cuda.stream()
    for count in (1, 32, 100):
        sizes = (ctypes.c_size_t * count)(*[1000] * count)
        places = (ctypes.c_uint64 * count)(*[DEVICE] * count)
        sources = (ctypes.c_uint64 * count)(*[HOST] * count)
        cuda.call("cuMemcpyBatchAsync_v2", places, sources, sizes, count, None, None, 0, stream)
        cuda.call("cuMemcpyBatchAsync", places, sources, sizes, count, None, None, 0, None, stream)
    deep = fakecuda.Copy3D(src_type=1, dst_type=2, width_bytes=1 << 26, height=1, depth=1)
    cuda.call("cuMemcpy3DAsync_v2", ctypes.byref(deep), stream)


def begin_unknown(cuda):
    stream = cuda.stream()
    with cuda.capture(stream) as graph:
        cuda.launch(cuda.kernel(ADD), stream=stream)
    cuda.before = cuda.instantiate(graph)


if __name__ == "__main__":
    program.main(globals(), {"unknown": begin_unknown})
