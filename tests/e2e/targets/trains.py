# SPDX-License-Identifier: BSD-2-Clause
"""trains.py STEPS   Waits for the file `go`, then trains so many steps on the stand-in of libcuda
in $FAKES: matmul is launched three times a step in forward() and once in backward(), a batch is
copied, the loss is read back every fourth step, and every tenth one waits for the device, 3 ms, the
last two times 20 ms.  truth.json: what the stand-in counted between `go` and `done`, and how long
each wait took.  3.8 and later."""
import ctypes
import os
import sys
import time

import common
import fakecuda

MATMUL = "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i"
SOFTMAX = "_Z7softmaxPfi"
BATCH, LOSS = 65536, 4
HOST, DEVICE = fakecuda.HOST, fakecuda.DEVICE
NO_PARAMETERS = (ctypes.c_void_p * 1)()


def forward(driver, matmul, softmax, stream):
    for _ in range(3):
        driver.cuLaunchKernel(matmul, 1, 1, 1, 32, 1, 1, 0, stream, NO_PARAMETERS, None)
    driver.cuLaunchKernel(softmax, 1, 1, 1, 32, 1, 1, 0, stream, NO_PARAMETERS, None)


def backward(driver, matmul, stream):
    driver.cuLaunchKernel(matmul, 1, 1, 1, 32, 1, 1, 0, stream, NO_PARAMETERS, None)


def load_batch(driver, stream):
    driver.cuMemcpyHtoDAsync_v2(DEVICE, HOST, BATCH, stream)


def item(driver):
    driver.cuMemcpyDtoH_v2(HOST, DEVICE, LOSS)


def finish(driver, stream, waits):
    began = time.monotonic_ns()
    driver.cuStreamSynchronize(stream)
    waits.append(time.monotonic_ns() - began)


def allocate(driver, size):
    block = ctypes.c_uint64()
    driver.cuMemAlloc_v2(ctypes.byref(block), size)
    driver.cuMemFree_v2(block)


def train(cuda, steps, waits):
    driver, stream = cuda.driver, cuda.stream()
    matmul, softmax = cuda.kernel(MATMUL), cuda.kernel(SOFTMAX)
    slow = cuda.kernel("_Z4slowPf", ns=3000000)
    for number in range(steps):
        load_batch(driver, stream)
        forward(driver, matmul, softmax, stream)
        backward(driver, matmul, stream)
        if number % 4 == 0:
            item(driver)
        if number % 5 == 0:
            allocate(driver, 4096 * (1 + number % 7))
        if number % 10 == 0:
            if number >= steps - 20:
                cuda.set_kernel_ns("_Z4slowPf", 20000000)
            cuda.launch(slow, stream=stream)
            finish(driver, stream, waits)
    cuda.synchronize()


def main():
    cuda, waits = fakecuda.Cuda(init=False), []
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    cuda.call("cuInit", 0)
    cuda.use(0)
    train(cuda, int(sys.argv[1]), waits)
    common.write("truth.json", dict(cuda.truth(), waits=waits))
    open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.01)


main()
