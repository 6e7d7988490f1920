# SPDX-License-Identifier: BSD-2-Clause
"""cuda_memory.py STEP...   Allocates and frees memory of the stand-in of libcuda in $FAKES: each
step is the function NAME, when the file NAME.wanted is there.  Then NAME.json has what the library
knows, and its `live` by the numbers of the lines here that allocate.  3.8 and later."""
import ctypes
import os
import sys
import threading
import time

import common
import fakecuda

CUDA = fakecuda.Cuda()
DRIVER = CUDA.driver
STREAM = CUDA.stream()
KEPT = {}


def tag():
    """The caller's next line allocates."""
    CUDA.set_tag(sys._getframe(1).f_lineno + 1)
    return ctypes.c_uint64()


def plain(size):
    at = tag()
    error = DRIVER.cuMemAlloc_v2(ctypes.byref(at), size)
    return 0 if error else at.value


def other(size):
    at = tag()
    error = DRIVER.cuMemAlloc_v2(ctypes.byref(at), size)
    return 0 if error else at.value


def pitched(width, height):
    at, pitch = tag(), ctypes.c_size_t()
    CUDA.set_tag(sys._getframe().f_lineno + 1)
    assert not DRIVER.cuMemAllocPitch_v2(ctypes.byref(at), ctypes.byref(pitch), width, height, 4)
    return at.value


def managed(size):
    at = tag()
    assert not DRIVER.cuMemAllocManaged(ctypes.byref(at), size, 1)
    return at.value


def pooled(size):
    at = tag()
    assert not DRIVER.cuMemAllocAsync(ctypes.byref(at), size, STREAM)
    return at.value


def physical(size):
    at = tag()
    assert not DRIVER.cuMemCreate(ctypes.byref(at), size, None, 0)
    return at.value


def in_thread(function, *arguments):
    got = []

    def run():
        CUDA.use(0)
        got.append(function(*arguments))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return got[0]


def free(address):
    return DRIVER.cuMemFree_v2(address)


# ---------------------------------------------------------------- steps

def allocates():
    KEPT["plain"] = [plain(1000 + i) for i in range(100)]
    KEPT["other"] = [in_thread(other, 1 << 20) for _ in range(5)]
    KEPT["pitched"] = pitched(640, 480)
    KEPT["managed"] = managed(5000)
    KEPT["pooled"] = [pooled(7000) for _ in range(10)]
    KEPT["physical"] = [physical(2 << 20) for _ in range(3)]
    host = CUDA.get("cuMemHostAlloc", 4096, 0)  # is no memory of the device
    assert host


def frees():
    """At other lines, and in other threads, than it was allocated."""
    for address in KEPT["plain"][::2]:
        assert not free(address)
    assert not in_thread(free, KEPT["other"].pop())
    assert not free(KEPT["managed"])
    for address in KEPT["pooled"][:4]:
        assert not DRIVER.cuMemFreeAsync(address, STREAM)
    assert not free(KEPT["pooled"][4])
    assert not DRIVER.cuMemRelease(KEPT["physical"].pop())
    KEPT["more"] = [other(300) for _ in range(7)]


def fails():
    """Calls that fail, and what is no memory: nothing changes."""
    CUDA.next_error("cuMemAlloc_v2", 2, 3)
    assert [plain(1 << 30) for _ in range(3)] == [0, 0, 0]
    CUDA.next_error("cuMemFree_v2", 700, 1)
    assert free(KEPT["plain"][1]) == 700
    assert not free(0)
    assert free(0x1234)
    with CUDA.capture(STREAM) as graph:
        CUDA.call("cuMemFreeAsync", pooled(1 << 25), STREAM)
    assert graph


def contexts():
    """A context ends, and a device is reset, with memory in them."""
    made = CUDA.get("cuCtxCreate_v2", 0, 0)
    assert plain(111) and other(222)
    CUDA.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    assert plain(333)
    CUDA.call("cuCtxDestroy_v2", made)
    CUDA.use(1)
    assert plain(444)
    CUDA.call("cuDevicePrimaryCtxReset_v2", 1)
    assert other(555)
    CUDA.use(0)


def forks():
    child = os.fork()
    if not child:
        free(KEPT["plain"][1])
        plain(1 << 20)
        os._exit(0)
    os.waitpid(child, 0)


def thousands():
    KEPT["many"] = [plain(64) for _ in range(9000)]


def too_many():
    KEPT["many"] = [plain(64) for _ in range(17000)]


def frees_most():
    for address in KEPT["many"][:-10]:
        assert not free(address)


def before():
    """Before pyprofd comes."""
    KEPT["before"] = [plain(1 << 20) for _ in range(6)]


def frees_before():
    for address in KEPT["before"][:4]:
        assert not free(address)
    KEPT["plain"] = [plain(10)]


def step(name):
    while not os.path.exists(common.path(name + ".wanted")):
        if common.stopped():
            sys.exit()
        time.sleep(0.01)
    globals()[name]()
    common.write(name + ".json", CUDA.truth())


if __name__ == "__main__":
    if sys.argv[1] == "before":
        before()
        del sys.argv[1]
    common.ready()
    for wanted in sys.argv[1:]:
        step(wanted)
    while not common.stopped():
        time.sleep(0.01)
