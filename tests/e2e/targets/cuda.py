# SPDX-License-Identifier: BSD-2-Clause
"""cuda.py MODE   Calls the stand-in of libcuda (cuda_driver.c) in $LIBRARY or the directory as
   calls     from the file `go` on: each function, some times
   threads   from `go` on: four threads launch 64 kernels 50,000 times each
   drive     launches as fast as one thread can, for as long as it runs
   forks     from `go` on: launches, its child's, and its own after that
   runtime   calls the stand-in of libcudart, which calls the driver from the 201st call on
counters.json: what the library counted.  3.8 and later."""
import ctypes
import os
import struct
import sys
import time

import common

DIRECTORY = os.environ.get("LIBRARY", common.DIRECTORY)
LAUNCHES, COPIES, SYNCS, ALLOCS = 3000, 400, 40, 250
COUNTERS = ("graphs", "h2d_bytes", "h2d_calls", "d2h_bytes", "d2h_calls", "2d_bytes", "fill_bytes",
            "alloc_bytes", "allocs", "frees", "syncs", "sync_ns", "checksum")


def load(name):
    return ctypes.CDLL(os.path.join(DIRECTORY, name), mode=ctypes.RTLD_GLOBAL)


def counters(driver):
    found = {name: ctypes.c_uint64.in_dll(driver, "fake_" + name).value for name in COUNTERS}
    found["launches"] = list((ctypes.c_uint64 * 64).in_dll(driver, "fake_launches"))
    return found


def pointer(number):
    return ctypes.c_void_p(number)


def launch(driver, function):
    for _ in range(LAUNCHES):
        driver.cuLaunchKernel(function, 1, 2, 3, 4, 5, 6, 7, pointer(8), None, None)
    for _ in range(10):
        driver.cuLaunchKernel_ptsz(function, 1, 2, 3, 4, 5, 6, 7, pointer(8), None, None)
        driver.cuGraphLaunch(pointer(0x5000), None)


def copy(driver):
    size = ctypes.c_size_t
    for i in range(COPIES):
        driver.cuMemcpyHtoDAsync_v2(pointer(0), pointer(0), size(1000 + i), None)
    for _ in range(SYNCS):
        driver.cuMemcpyDtoH_v2(pointer(0), pointer(0), size(1 << 20))
    layout = bytearray(128)
    struct.pack_into("<I", layout, 16, 1)
    struct.pack_into("<I", layout, 72, 2)
    struct.pack_into("<QQ", layout, 112, 640, 480)
    for _ in range(COPIES):
        driver.cuMemcpy2DAsync_v2((ctypes.c_char * 128).from_buffer(layout), None)
        driver.cuMemsetD32Async(pointer(0), 0, size(256), None)


def synchronize(driver):
    for _ in range(SYNCS):
        driver.cuStreamSynchronize(None)
        driver.cuStreamSynchronize_ptsz(None)


def allocate(driver):
    block = ctypes.c_uint64()
    for i in range(ALLOCS):
        driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(4096 * (i + 1)))
        driver.cuMemFree_v2(block)


def named(driver, name):
    function = ctypes.c_void_p()
    driver.cuModuleGetFunction(ctypes.byref(function), None, name.encode())
    return function


def select(driver, device):
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    driver.cuCtxSetCurrent(context)


def calls(driver):
    select(driver, 3)
    launch(driver, named(driver, "first_kernel_1"))
    copy(driver)
    synchronize(driver)
    allocate(driver)


def threads(driver):
    for kernel in range(64):
        named(driver, "kernel_%d" % kernel)
    driver.fake_drive_threads(4, 64, 50000)


def forks(driver):
    driver.fake_drive(1, 500)
    child = os.fork()
    if not child:
        time.sleep(0.5)  # it has its links some ms after its fork
        driver.fake_drive(2, 400)
        os._exit(0)
    os.waitpid(child, 0)
    driver.fake_drive(1, 500)
    common.write("child.json", child)


def runtime():
    library = load("libcudart.so.12")
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    for _ in range(200):
        library.cudaLaunchKernel(pointer(0x7000))
    open(common.path("half"), "w").close()
    while not os.path.exists(common.path("further")):
        time.sleep(0.01)
    load("libcuda.so.1")
    open(common.path("driver"), "w").close()
    while not os.path.exists(common.path("last")):
        time.sleep(0.01)
    for _ in range(300):
        library.cudaLaunchKernel(pointer(0x7000))
    open(common.path("done"), "w").close()


def main():
    mode = sys.argv[1]
    if mode == "runtime":
        runtime()
    else:
        driver = load("libcuda.so.1")
        common.ready()
        while mode != "drive" and not os.path.exists(common.path("go")):
            time.sleep(0.01)
        while mode == "drive" and not common.stopped():
            driver.fake_drive(8, 10000)
        if mode != "drive":
            globals()[mode](driver)
        common.write("counters.json", counters(driver))
        open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.01)


main()
