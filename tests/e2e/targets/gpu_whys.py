# SPDX-License-Identifier: BSD-2-Clause
"""gpu_whys.py MODE SECONDS   From the file `go` on, for so many seconds, what the function of this
name says: a program whose GPU is slow for one reason, on the stand-in of libcuda in $FAKES.
truth.json: what the library counted.  3.8 and later."""
import ctypes
import os
import sys
import time

import common
import fakecuda

MS = 1000000  # ns
ADD = "_Z3addPfi"
NO_PARAMETERS = (ctypes.c_void_p * 1)()


def launch(driver, kernel, stream):
    driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NO_PARAMETERS, None)


def finish(cuda, stream):
    cuda.driver.cuStreamSynchronize(stream)


def busy(seconds):
    until, total = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        for i in range(500):
            total += i
    return total


def sync_bound(cuda, stream):
    """The result of each few kernels is waited for."""
    kernel = cuda.kernel(ADD, ns=2 * MS)
    for _ in range(4):
        launch(cuda.driver, kernel, stream)
    finish(cuda, stream)


def launch_bound(cuda, stream):
    """Python takes far longer for a launch than the device for a kernel."""
    kernel = cuda.kernel(ADD, ns=0)
    for _ in range(200):
        launch(cuda.driver, kernel, stream)
        busy(0.00002)
    finish(cuda, stream)


def copy_bound(cuda, stream):
    """Copies that wait until they are done, from pageable memory."""
    cuda.set_copy(latency_ns=2 * MS)
    for _ in range(10):
        cuda.driver.cuMemcpyHtoD_v2(fakecuda.DEVICE, fakecuda.HOST, 1 << 20)
    well_behaved(cuda, stream)


def tiny_copies(cuda, stream):
    """A value at a time."""
    for i in range(100):
        cuda.driver.cuMemcpyHtoDAsync_v2(fakecuda.DEVICE, fakecuda.HOST, 4 + 4 * (i % 8), stream)
    kernels(cuda, stream)


def churn(cuda, stream):
    """Memory is asked for and given back in each step."""
    block = ctypes.c_uint64()
    for size in range(1, 6):
        cuda.driver.cuMemAlloc_v2(ctypes.byref(block), size << 20)
        cuda.driver.cuMemFree_v2(block)
    well_behaved(cuda, stream)


def graph(cuda, stream):
    """The same 800 launches in each step."""
    kernel = cuda.kernel(ADD, ns=0)
    for _ in range(800):
        launch(cuda.driver, kernel, stream)
    finish(cuda, stream)
    time.sleep(0.05)


def captured(cuda, stream):
    """The same as a graph."""
    if not hasattr(cuda, "instance"):
        kernel = cuda.kernel(ADD, ns=0)
        with cuda.capture(stream) as recorded:
            for _ in range(800):
                launch(cuda.driver, kernel, stream)
        cuda.instance = cuda.instantiate(recorded)
    cuda.graph_launch(cuda.instance, stream)
    finish(cuda, stream)
    time.sleep(0.05)


def starved(cuda, stream):
    """The next batch is loaded while the device has nothing to do."""
    kernel = cuda.kernel(ADD, ns=5 * MS)
    for _ in range(60):
        launch(cuda.driver, kernel, stream)
    cuda.synchronize()
    load_batch()


def load_batch():
    busy(0.3)
    time.sleep(0.1)


def well_behaved(cuda, stream):
    """A large copy, many kernels that are long enough, and one synchronisation."""
    cuda.driver.cuMemcpyHtoDAsync_v2(fakecuda.DEVICE, fakecuda.HOST, 1 << 20, stream)
    kernels(cuda, stream)


def kernels(cuda, stream):
    kernel = cuda.kernel(ADD, ns=MS)
    for _ in range(100):
        launch(cuda.driver, kernel, stream)
    finish(cuda, stream)


def main():
    cuda = fakecuda.Cuda()
    stream = cuda.stream()
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    cuda.reset()
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until and not common.stopped():
        globals()[sys.argv[1]](cuda, stream)
    common.write("truth.json", cuda.truth())
    open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.01)


main()
