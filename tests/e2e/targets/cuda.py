# SPDX-License-Identifier: BSD-2-Clause
"""cuda.py MODE [OPTIONS]   Drives the stand-ins of CUDA's libraries in $FAKES by a function below,
from the file `go` on.  OPTIONS: what fakecuda.Cuda() takes, as JSON.  truth.json: what the library
knows at the end, before the file `done`.  3.8 and later."""
import ctypes
import json
import os
import sys
import threading
import time

import common
import fakecuda
from fakecuda import DEVICE, HOST

ADD, OTHER = "_Z3addPfi", "_Z5otherPf"
LAUNCHES, COPIES, SYNCS, ALLOCS = 3000, 400, 40, 250
MS = 1000000


def sizes_of(count):
    return (ctypes.c_size_t * count)(*range(1, count + 1))


def addresses(value, count):
    return (ctypes.c_uint64 * count)(*[value] * count)


def launch(cuda, kernel, stream):
    for _ in range(LAUNCHES):
        cuda.launch(kernel, grid=(1, 2, 3), block=(4, 5, 6), smem=7, stream=stream)


def launch_otherwise(cuda, kernel, stream):
    for number, api in enumerate(
            ("cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
             "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz")):
        for _ in range(10 + number):
            cuda.launch(kernel, stream=stream, api=api)


def copy(cuda, stream):
    cuda.set_copy(latency_ns=MS // 2)
    for i in range(COPIES):
        cuda.copy("htod", 1000 + i, stream)
    for direction in ("htod", "dtoh", "dtod"):
        for i in range(SYNCS):
            cuda.copy(direction, 1 << 20)
    for direction in ("dtoh", "dtod"):
        cuda.copy(direction, 77, stream)
    cuda.call("cuMemcpy", DEVICE, HOST, 5)
    cuda.call("cuMemcpyAsync", HOST, DEVICE, 7, stream)
    cuda.call("cuMemcpyPeer", DEVICE, None, DEVICE, None, 60)
    cuda.call("cuMemcpyPeerAsync", DEVICE, None, DEVICE, None, 50, stream)
    flat = fakecuda.Copy2D(src_type=1, dst_type=2, width_bytes=640, height=480)
    deep = fakecuda.Copy3D(src_type=2, dst_type=1, width_bytes=10, height=20, depth=30)
    cuda.call("cuMemcpy2D_v2", ctypes.byref(flat))
    cuda.call("cuMemcpy3D_v2", ctypes.byref(deep))
    for _ in range(COPIES):
        cuda.call("cuMemcpy2DAsync_v2", ctypes.byref(flat), stream)
        cuda.call("cuMemcpy3DAsync_v2", ctypes.byref(deep), stream)
    cuda.set_copy()


def fill(cuda, stream):
    for size in (3, 256):
        cuda.call("cuMemsetD8_v2", DEVICE, 0, size)
        cuda.call("cuMemsetD32_v2", DEVICE, 0, size)
        cuda.call("cuMemsetD8Async", DEVICE, 0, size, stream)
        cuda.call("cuMemsetD32Async", DEVICE, 0, size, stream)
        cuda.call("cuMemsetD2D8Async", DEVICE, 4096, 0, size, 9, stream)


def synchronize(cuda, kernel, stream):
    event = cuda.event()
    cuda.set_kernel_ns(OTHER, 2 * MS)
    for _ in range(SYNCS):
        cuda.launch(kernel, stream=stream)
        cuda.synchronize(stream)
        cuda.launch(kernel, stream=stream)
        cuda.synchronize()
        cuda.launch(kernel, stream=stream)
        cuda.call("cuEventRecord", event, stream)
        cuda.call("cuEventSynchronize", event)
    cuda.call("cuStreamSynchronize_ptsz", stream)
    cuda.call("cuCtxSynchronize_v2", None)


def allocate(cuda, stream):
    for i in range(ALLOCS):
        cuda.free(cuda.allocate(4096 * (i + 1)))
    block = cuda.get("cuMemAllocAsync", 5000, stream, kind=ctypes.c_uint64)
    cuda.call("cuMemFreeAsync", block, stream)
    for name, arguments in (("cuMemHostAlloc", (4096, 0)), ("cuMemAllocHost_v2", (8192,))):
        cuda.call("cuMemFreeHost", cuda.get(name, *arguments))


# ---------------------------------------------------------------- modes

def calls(cuda):
    """Each entry point, some times."""
    cuda.use(1)
    kernel, other = cuda.kernel(ADD, params=0), cuda.kernel(OTHER, by="module")
    stream = cuda.stream()
    launch(cuda, kernel, stream)
    launch_otherwise(cuda, kernel, stream)
    copy(cuda, stream)
    fill(cuda, stream)
    synchronize(cuda, other, stream)
    allocate(cuda, stream)


def all_reduce(nccl, communicator, stream):
    for i in range(ALLOCS):
        nccl.ncclAllReduce(None, None, ctypes.c_size_t(1000 + i), 9, 0, communicator, stream)


def exchange(nccl, communicator, stream):
    size = ctypes.c_size_t
    for i in range(SYNCS):
        nccl.ncclGroupStart()
        nccl.ncclSend(None, size(i), 8, 1, communicator, stream)
        nccl.ncclRecv(None, size(i + 1), 10, 1, communicator, stream)
        nccl.ncclGroupEnd()


def collectives(cuda):
    """By two communicators.  collectives.json: function -> [calls, bytes] by NCCL; communicators:
    their handles, that of all_reduce() first."""
    nccl = ctypes.CDLL(os.path.join(cuda.directory, "libnccl.so.2"))
    nccl.fake_nccl_count.restype = ctypes.c_uint64
    ranks, pair, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t
    for communicator in ranks, pair:
        nccl.ncclCommInitRank(ctypes.byref(communicator), 8, fakecuda.NcclUniqueId(b"id"), 3)
    open(common.path("loaded"), "w").close()
    await_file("further")
    stream = ctypes.c_void_p(cuda.stream())
    all_reduce(nccl, ranks, stream)
    exchange(nccl, pair, stream)
    nccl.ncclReduce(None, None, size(10), 2, 0, 0, pair, None)
    nccl.ncclBroadcast(None, None, size(20), 6, 0, pair, None)
    nccl.ncclAllGather(None, None, size(30), 4, pair, None)
    nccl.ncclReduceScatter(None, None, size(40), 7, 0, pair, None)
    names = ["nccl" + name for name in ("AllReduce", "Send", "Recv", "GroupEnd", "Reduce",
                                        "Broadcast", "AllGather", "ReduceScatter")]
    common.write("collectives.json", dict({name: [
        nccl.fake_nccl_count(name.encode(), what) for what in (b"calls", b"bytes")
    ] for name in names}, communicators=[hex(ranks.value), hex(pair.value)]))
    # A type that nobody knows, which NCCL refuses.
    nccl.ncclAllReduce(None, None, size(7), 99, 0, pair, None)


def fails(cuda):
    """Calls that fail: they count as calls, and hand out no handle."""
    kernel, stream = cuda.kernel(ADD), cuda.stream()
    for api in ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuMemAlloc_v2"):
        cuda.next_error(api, 700, 5)
    for _ in range(10):
        for work in (lambda: cuda.launch(kernel), lambda: cuda.copy("htod", 10, stream),
                     lambda: cuda.synchronize(stream), lambda: cuda.allocate(1000)):
            try:
                work()
            except fakecuda.CudaError as error:
                assert error.code == 700, error
    try:
        cuda.kernel("missing_kernel")
    except fakecuda.CudaError as error:
        assert error.code == 500, error


def libraries(cuda):
    """By cudart of two versions at once, and by one that is hidden in a library."""
    for number, name in enumerate(fakecuda.KERNELS):
        cuda.run(name, 10 + number)
    older = fakecuda.Cuda(cudart="libcudart.so.12", kernels="libfakekernels12.so", init=False)
    for number, name in enumerate(fakecuda.KERNELS):
        older.run(name, 100 + number)
    blas = ctypes.CDLL(os.path.join(cuda.directory, "libfakeblas.so"))
    for _ in range(50):
        assert not blas.fakeblas_sgemm(1000, 1000, 1000, None)
    pointer = cuda.get_runtime("cudaMalloc", 100)
    cuda.call_runtime("cudaMemcpy", pointer, HOST, 100, 1)
    cuda.call_runtime("cudaDeviceSynchronize")


def runs(cuda):
    for number, name in enumerate(fakecuda.KERNELS):
        cuda.run(name, 10 + number)
    cuda.synchronize()


def first(cuda, kernel):
    for _ in range(24):
        cuda.launch(kernel)


def second(cuda, kernel):
    for _ in range(18):
        cuda.launch(kernel)


def third(cuda, kernel):
    for _ in range(12):
        cuda.launch(kernel)


def often(cuda, kernel):
    for _ in range(9):
        cuda.launch(kernel)


def seldom(cuda, kernel):
    cuda.launch(kernel)


def lines(cuda):
    """Few launches of one kernel, and 17,000 of another one in three seconds, by line."""
    few, many = cuda.kernel(OTHER), cuda.kernel(ADD)
    for _ in range(4):
        for _ in range(85):
            for _ in range(5):
                often(cuda, many)
                seldom(cuda, many)
            time.sleep(0.007)
        for work in first, second, third:
            work(cuda, few)


def many(cuda):
    """More kernels than there are rows, and than stacks can be taken of."""
    handles = [cuda.kernel("_Z12kernel_%05dv" % i, by="module") for i in range(100000)]
    for handle in handles:
        cuda.launch(handle)


def threads(cuda):
    """Threads that launch at once."""
    handles = [cuda.kernel("_Z9kernel_%02dv" % i) for i in range(64)]

    def work():
        cuda.use(0)
        stream = cuda.stream()
        for _ in range(50):
            for handle in handles:
                cuda.launch(handle, stream=stream)
    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def forks(cuda):
    """Launches, a child's, which fail, and a child's of its own CUDA."""
    kernel = cuda.kernel(ADD)
    for _ in range(500):
        cuda.launch(kernel)
    child = os.fork()
    if not child:
        time.sleep(0.5)  # it has its links some ms after its fork
        for _ in range(400):
            cuda.driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        common.write("child_truth.json", cuda.truth())
        os._exit(0)
    os.waitpid(child, 0)
    for _ in range(500):
        cuda.launch(kernel)
    common.write("child.json", child)


def executes(cuda):
    """Becomes another program, which launches."""
    kernel = cuda.kernel(ADD)
    for _ in range(500):
        cuda.launch(kernel)
    common.write("before.json", cuda.truth())
    os.remove(common.path("ready"))
    os.remove(common.path("go"))
    os.execv(sys.executable, [sys.executable, sys.argv[0], "named", sys.argv[2]])


def named(cuda):
    kernel = cuda.kernel(OTHER)
    for _ in range(300):
        cuda.launch(kernel)


def opens_again(cuda):
    """Unloads the library, and loads it again."""
    kernel = cuda.kernel(ADD)
    for _ in range(200):
        cuda.launch(kernel)
    before = cuda.truth()["api"]["cuLaunchKernel"]["calls"]
    handle = cuda.driver._handle
    del cuda.driver
    import _ctypes
    _ctypes.dlclose(handle)
    gone = not any("libcuda.so" in line for line in open("/proc/self/maps"))
    again = fakecuda.Cuda()
    kernel = again.kernel(OTHER)
    for _ in range(300):
        again.launch(kernel)
    cuda.driver = again.driver
    common.write("opened.json", {"before": before, "gone": gone})


def waits(cuda):
    """Ends in the middle of a call."""
    kernel, stream = cuda.kernel(ADD, ns=60000 * MS), cuda.stream()
    for _ in range(100):
        cuda.launch(kernel, stream=stream)
    cuda.call("cuStreamSynchronize", stream)


def runtime(_):
    """A runtime without a driver, in $ALONE, whose calls fail; later one above a driver."""
    alone = ctypes.CDLL(os.path.join(os.environ["ALONE"], "libcudart.so.12"))
    common.ready()
    await_file("go")
    fakecuda.declare(alone, fakecuda.RUNTIME)
    stream = ctypes.c_void_p(0x5000)
    for _ in range(200):
        alone.cudaLaunchKernel(ctypes.c_void_p(0x7000), 1, 1, 1, 1, None, 0, stream)
    deep = fakecuda.RuntimeCopy3D(width=10, height=20, depth=300, kind=2)
    for _ in range(3):
        alone.cudaMemcpy2D(DEVICE, 64, HOST, 64, 30, 40, 1)
        alone.cudaMemcpy2DAsync(DEVICE, 64, HOST, 64, 50, 60, 1, stream)
        alone.cudaMemcpy3D(ctypes.byref(deep))
        alone.cudaMemcpy3DAsync(ctypes.byref(deep), stream)
        alone.cudaMemcpyToSymbol(DEVICE, HOST, 77, 0, 1)
        alone.cudaMemcpyFromSymbolAsync(HOST, DEVICE, 99, 0, 2, stream)
        assert alone.cudaStreamBeginCapture(stream, 0) == 35
    open(common.path("half"), "w").close()
    await_file("further")
    cuda = fakecuda.Cuda()
    cuda.runtime  # pylint: disable=pointless-statement
    open(common.path("driver"), "w").close()
    await_file("last")
    cuda.run("matmul", 300)
    return cuda


def await_file(name):
    while not os.path.exists(common.path(name)):
        time.sleep(0.01)


def main(modes, before=()):
    """before: what modes do before `ready`"""
    mode = modes[sys.argv[1]]
    if mode is runtime:
        cuda = runtime(None)
    else:
        cuda = fakecuda.Cuda(**json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}"))
        if sys.argv[1] in before:
            before[sys.argv[1]](cuda)
        common.ready()
        await_file("go")
        mode(cuda)
    common.write("truth.json", cuda.truth())
    open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.01)


if __name__ == "__main__":
    main(globals())
