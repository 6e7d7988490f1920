# SPDX-License-Identifier: BSD-2-Clause
"""cuda_names.py MODE [CUDART KERNELS]   Launches kernels of the stand-ins in $FAKES (fakecuda.py),
each from a function of its own:
   late    once before `ready`, so that all handles are there, and again from the file `go` on
   early   from `go` on alone
   handles from `go` on: kernels by all three kinds of handles, and names as none should give
   named   as late, of handles alone that the program has the driver make
   runtime OFFSET   from `go` on: by the stand-in of libcudart in the directory, which has no
           driver, the function so far behind where libfakeblas.so is mapped
counters.json: how often each was launched since `go`, by its name.  3.8 and later."""
import ctypes
import os
import sys
import time

import common
import fakecuda

COUNT = 100
LONG = "_ZN%sEv" % "".join("7part%03d" % i for i in range(200))

mode = sys.argv[1]


def runtime(offset):
    """What needs nothing of the driver's."""
    blas = ctypes.CDLL(os.path.join(os.environ["FAKES"], "libfakeblas.so"))
    with open("/proc/self/maps", encoding="ascii") as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if "libfakeblas.so" in line)
    library = ctypes.CDLL(common.path("libcudart.so.12"))
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.005)
    for _ in range(COUNT):
        library.cudaLaunchKernel(ctypes.c_void_p(base + offset), *[ctypes.c_void_p(0)] * 8)
    common.write("counters.json", {"_ZN8fakeblas12sgemm_128x64EPKfS1_Pfiii": COUNT})
    open(common.path("done"), "w").close()
    while not common.stopped():
        time.sleep(0.005)
    return blas


if mode == "runtime":
    runtime(int(sys.argv[2], 16))
    sys.exit(0)
cuda = fakecuda.Cuda(os.environ["FAKES"], cudart=(sys.argv[2:] + ["libcudart.so.13"])[0],
                     kernels=(sys.argv[3:] + ["libfakekernels.so"])[0])
launched = {}


def count(name, times):
    launched[name] = launched.get(name, 0) + times


def launch_vector_add(times):
    cuda.run("vector_add", times)


def launch_matmul(times):
    cuda.run("matmul", times)


def launch_nms(times):
    cuda.run("nms", times)


def launch_reduce_rows(times):
    cuda.run("reduce_rows", times)


def launch_softmax(times):
    cuda.run("softmax", times)


def launch_sgemm(times):
    for _ in range(times):
        BLAS.fakeblas_sgemm(128, 64, 8, None)


def load_blas():
    path = os.path.join(cuda.directory, "libfakeblas.so")
    if not os.path.exists(path):
        return None
    library = ctypes.CDLL(path)
    library.fakeblas_sgemm.argtypes = [ctypes.c_uint] * 3 + [ctypes.c_void_p]
    return library


BLAS = load_blas()


def launch_all(times):
    for short, name in fakecuda.KERNELS.items():
        globals()["launch_" + short](times)
        count(name, times)
    if BLAS:
        launch_sgemm(times)
        count("_ZN8fakeblas12sgemm_128x64EPKfS1_Pfiii", times)


def launch_handle(kernel, times):
    for _ in range(times):
        cuda.launch(kernel)


def launch_handles(times):
    for by in ("module", "library", "function"):
        launch_handle(cuda.kernel("_ZN4fake3addEPfi", by=by), times)
        count("_ZN4fake3addEPfi", times)
    for name in (LONG, "_Z" + "4abcd" * 1000, "\x1b[31m\n", "_ZZZ", "plain"):
        launch_handle(cuda.kernel(name, by="module"), times)
        count(name, times)


def launch_own(kernel, times):
    launch_handle(kernel, times)
    count("%#x" % kernel, times)


if mode == "late":
    launch_all(1)
own = cuda.kernel("_ZN4fake3addEPfi", by="module") if mode == "named" else None
launched.clear()
common.ready()
while not os.path.exists(common.path("go")):
    if common.stopped():
        sys.exit(0)
    time.sleep(0.005)
if mode == "handles":
    launch_handles(COUNT)
elif mode == "named":
    launch_own(own, COUNT)
else:
    launch_all(COUNT)
common.write("counters.json", launched)
open(common.path("done"), "w").close()
while not common.stopped():
    time.sleep(0.005)
