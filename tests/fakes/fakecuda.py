# SPDX-License-Identifier: BSD-2-Clause
"""Drives the stand-ins of CUDA's libraries from Python 3.8 or later, so that a test's program knows
what it did:

    cuda = fakecuda.Cuda(directory)              # $FAKES without it: build/tests/fakes
    kernel = cuda.kernel("_Z3addPfi", ns=20000)  # a handle; how long it runs
    stream = cuda.stream()
    cuda.launch(kernel, grid=(8, 1, 1), block=(128, 1, 1), stream=stream)
    cuda.copy("htod", 1 << 20, stream)           # without a stream: the sync call
    cuda.synchronize(stream)                     # without a stream: the context
    with cuda.capture(stream) as graph: ...      # what is launched is recorded
    cuda.graph_launch(cuda.instantiate(graph), stream)
    cuda.run("matmul", 10, stream)               # by cudart, from a host stub as nvcc makes them
    cuda.call("cuMemAlloc_v2", ...)              # any entry point; CudaError when it is not 0
    cuda.truth()["kernels"]["_Z3addPfi"]         # all counters: tests/fakes/fake_cuda.h

One Cuda a process.  Each thread that calls first needs cuda.use(device).
"""
import contextlib
import ctypes
import json
import os
import tempfile

# Parameters, one letter each: p pointer, s text, i int, u unsigned int, b byte, z size, d device
# address.
LETTERS = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "i": ctypes.c_int, "u": ctypes.c_uint,
           "b": ctypes.c_ubyte, "z": ctypes.c_size_t, "d": ctypes.c_uint64}
DRIVER = {
    "cuInit": "u", "cuDriverGetVersion": "p", "cuDeviceGet": "pi", "cuDeviceGetCount": "p",
    "cuDeviceGetName": "pii", "cuDeviceGetUuid": "pi", "cuDeviceGetUuid_v2": "pi",
    "cuDevicePrimaryCtxRetain": "pi", "cuDevicePrimaryCtxRelease_v2": "i",
    "cuDevicePrimaryCtxSetFlags_v2": "iu",
    "cuCtxSetCurrent": "p", "cuCtxPushCurrent_v2": "p", "cuCtxPopCurrent_v2": "p",
    "cuCtxGetCurrent": "p", "cuCtxGetDevice": "p", "cuCtxSynchronize": "",
    "cuCtxSynchronize_v2": "p", "cuGetProcAddress_v2": "spidp",
    "cuLaunchKernel": "puuuuuuuppp", "cuLaunchKernel_ptsz": "puuuuuuuppp",
    "cuLaunchKernelEx": "pppp", "cuLaunchKernelEx_ptsz": "pppp",
    "cuLaunchCooperativeKernel": "puuuuuuupp", "cuLaunchCooperativeKernel_ptsz": "puuuuuuupp",
    "cuGraphLaunch": "pp", "cuGraphLaunch_ptsz": "pp", "cuStreamBeginCapture": "p",
    "cuStreamBeginCapture_v2": "pi", "cuStreamBeginCapture_v2_ptsz": "pi",
    "cuStreamBeginCaptureToGraph": "ppppzi", "cuStreamEndCapture": "pp",
    "cuStreamEndCapture_ptsz": "pp", "cuStreamIsCapturing": "pp",
    "cuGraphCreate": "pu", "cuGraphAddKernelNode_v2": "pppzp", "cuGraphAddMemcpyNode": "pppzpp",
    "cuGraphAddMemsetNode": "pppzpp", "cuGraphAddChildGraphNode": "pppzp",
    "cuGraphAddNode_v2": "ppppzp", "cuGraphClone": "pp", "cuGraphExecUpdate_v2": "ppp",
    "cuCtxCreate_v2": "pui", "cuCtxCreate_v4": "ppui", "cuCtxDestroy_v2": "p",
    "cuGraphInstantiateWithFlags": "ppd", "cuGraphInstantiateWithParams": "ppp",
    "cuGraphDestroy": "p", "cuGraphExecDestroy": "p",
    "cuMemcpyAsync": "ddzp", "cuMemcpyHtoDAsync_v2": "dpzp", "cuMemcpyDtoHAsync_v2": "pdzp",
    "cuMemcpyDtoDAsync_v2": "ddzp", "cuMemcpyPeerAsync": "dpdpzp", "cuMemcpy2DAsync_v2": "pp",
    "cuMemcpy3DAsync_v2": "pp", "cuMemcpyBatchAsync": "pppzppzpp",
    "cuMemcpyBatchAsync_v2": "pppzppzp", "cuMemcpy": "ddz", "cuMemcpyHtoD_v2": "dpz",
    "cuMemcpyDtoH_v2": "pdz", "cuMemcpyDtoD_v2": "ddz", "cuMemcpyPeer": "dpdpz",
    "cuMemcpy2D_v2": "p", "cuMemcpy3D_v2": "p", "cuMemsetD8Async": "dbzp",
    "cuMemsetD32Async": "duzp", "cuMemsetD2D8Async": "dzbzzp", "cuMemsetD8_v2": "dbz",
    "cuMemsetD32_v2": "duz", "cuStreamSynchronize": "p", "cuStreamSynchronize_ptsz": "p",
    "cuStreamQuery": "p", "cuStreamWaitEvent": "ppu", "cuStreamCreate": "pu",
    "cuStreamDestroy_v2": "p", "cuEventCreate": "pu", "cuEventDestroy_v2": "p",
    "cuEventRecord": "pp", "cuEventRecordWithFlags": "ppu", "cuEventQuery": "p",
    "cuEventSynchronize": "p", "cuEventElapsedTime": "ppp",
    "cuMemAlloc_v2": "pz", "cuMemFree_v2": "d", "cuMemAllocAsync": "pzp", "cuMemFreeAsync": "dp",
    "cuMemAllocPitch_v2": "ppzzu", "cuMemAllocManaged": "pzu", "cuMemCreate": "pzpd",
    "cuMemRelease": "d", "cuDevicePrimaryCtxReset_v2": "i",
    "cuMemHostAlloc": "pzu", "cuMemAllocHost_v2": "pz", "cuMemFreeHost": "p",
    "cuMemGetInfo_v2": "pp", "cuModuleLoadData": "ps", "cuModuleGetFunction": "pps",
    "cuModuleUnload": "p", "cuLibraryLoadData": "psppuppu", "cuLibraryGetKernel": "pps",
    "cuLibraryUnload": "p", "cuKernelGetFunction": "pp", "cuKernelGetName": "pp",
    "cuFuncGetName": "pp",
}
RUNTIME = {
    "cudaGetDeviceCount": "p", "cudaSetDevice": "i", "cudaGetDevice": "p", "cudaGetLastError": "",
    "cudaDeviceSynchronize": "", "cudaMalloc": "pz", "cudaMallocAsync": "pzp", "cudaFree": "d",
    "cudaFreeAsync": "dp", "cudaMallocHost": "pz", "cudaHostAlloc": "pzu", "cudaFreeHost": "p",
    "cudaMemcpy": "ppzi", "cudaMemcpyAsync": "ppzip", "cudaMemset": "piz",
    "cudaMemcpy2D": "pzpzzzi", "cudaMemcpy2DAsync": "pzpzzzip", "cudaMemcpy3D": "p",
    "cudaMemcpy3DAsync": "pp", "cudaMemcpyToSymbol": "ppzzi",
    "cudaMemcpyFromSymbolAsync": "ppzzip",
    "cudaMemsetAsync": "pizp", "cudaStreamCreate": "p", "cudaStreamDestroy": "p",
    "cudaStreamSynchronize": "p", "cudaStreamSynchronize_ptsz": "p", "cudaStreamQuery": "p",
    "cudaStreamWaitEvent": "ppu", "cudaEventCreate": "p", "cudaEventDestroy": "p",
    "cudaEventRecord": "pp", "cudaEventQuery": "p", "cudaEventSynchronize": "p",
    "cudaStreamBeginCapture": "pi", "cudaStreamEndCapture": "pp", "cudaGraphInstantiate": "ppd",
    "cudaGraphLaunch": "pp", "cudaGraphDestroy": "p", "cudaGraphExecDestroy": "p",
}
# Kernels of libfakekernels.so: their functions there and their names on the device.
KERNELS = {"vector_add": "_Z9vectorAddPKfS0_Pfi",
           "matmul": "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i",
           "nms": "_ZN4fake15nms_kernel_implEPKfi",
           "reduce_rows": "_Z11reduce_rowsPKfPfi",
           "softmax": "_Z7softmaxPfi"}
DEVICE, HOST = 0x100000000000, 0x1000  # addresses for copies: no data moves
COPIES = {  # direction: async, sync
    "htod": ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2"),
    "dtoh": ("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH_v2"),
    "dtod": ("cuMemcpyDtoDAsync_v2", "cuMemcpyDtoD_v2")}


class CudaError(Exception):
    """An entry point did not return 0."""

    def __init__(self, name, code):
        super().__init__("%s: %d" % (name, code))
        self.name = name
        self.code = code


class LaunchConfig(ctypes.Structure):
    """What cuLaunchKernelEx takes."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("smem", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("attribute_count", ctypes.c_uint)]


class NcclUniqueId(ctypes.Structure):
    """ncclUniqueId: it is passed by value."""
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Copy2D(ctypes.Structure):
    """What cuMemcpy2D_v2 takes: the fields at their offsets, as far as the stand-in reads them."""
    _fields_ = [("_0", ctypes.c_size_t * 2), ("src_type", ctypes.c_uint),
                ("_1", ctypes.c_size_t * 6), ("dst_type", ctypes.c_uint),
                ("_2", ctypes.c_size_t * 4), ("width_bytes", ctypes.c_size_t),
                ("height", ctypes.c_size_t)]


class Copy3D(ctypes.Structure):
    """What cuMemcpy3D_v2 takes."""
    _fields_ = [("_0", ctypes.c_size_t * 4), ("src_type", ctypes.c_uint),
                ("_1", ctypes.c_size_t * 10), ("dst_type", ctypes.c_uint),
                ("_2", ctypes.c_size_t * 6), ("width_bytes", ctypes.c_size_t),
                ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class RuntimeCopy3D(ctypes.Structure):
    """What cudaMemcpy3D takes."""
    _fields_ = [("_0", ctypes.c_size_t * 4), ("src", ctypes.c_void_p * 4),
                ("_1", ctypes.c_size_t * 4), ("dst", ctypes.c_void_p * 4),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
                ("depth", ctypes.c_size_t), ("kind", ctypes.c_int)]


class KernelNode(ctypes.Structure):
    """What cuGraphAddKernelNode_v2 takes."""
    _fields_ = [("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
                ("block", ctypes.c_uint * 3), ("smem", ctypes.c_uint),
                ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class FillNode(ctypes.Structure):
    """What cuGraphAddMemsetNode takes."""
    _fields_ = [("dst", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint),
                ("element_bytes", ctypes.c_uint), ("width", ctypes.c_size_t),
                ("height", ctypes.c_size_t), ("context", ctypes.c_void_p)]


class CopyNode(ctypes.Structure):
    """What cuGraphAddNode_v2 takes of a copy."""
    _fields_ = [("flags", ctypes.c_int * 2), ("context", ctypes.c_void_p), ("copy", Copy3D)]


class AnyNode(ctypes.Union):
    _fields_ = [("kernel", KernelNode), ("copy", CopyNode), ("fill", FillNode),
                ("graph", ctypes.c_void_p), ("_reserved", ctypes.c_uint64 * 29)]


class NodeParams(ctypes.Structure):
    """What cuGraphAddNode_v2 takes: NODES says the types."""
    _fields_ = [("type", ctypes.c_int), ("_0", ctypes.c_int * 3), ("of", AnyNode),
                ("_1", ctypes.c_uint64)]


NODES = {"kernel": 0, "copy": 1, "fill": 2, "graph": 4}


def declare(library, table):
    """Says of the entry points that a library has what they take."""
    for name, letters in table.items():
        function = getattr(library, name, None)
        if function:
            function.argtypes = [LETTERS[letter] for letter in letters]
            function.restype = ctypes.c_int


def call(library, name, *arguments):
    """An entry point of a library; CudaError when it does not return 0."""
    error = getattr(library, name)(*arguments)
    if error:
        raise CudaError(name, error)


def get(library, name, *arguments, kind):
    """One whose first argument is a pointer to what it gives."""
    result = kind()
    call(library, name, ctypes.byref(result), *arguments)
    return result.value


class Cuda:
    """One process's CUDA; initialized with device 0 unless `init` is false."""

    def __init__(self, directory=None, variant="", cudart="libcudart.so.13",
                 kernels="libfakekernels.so", init=True):
        self.directory = os.path.join(
            directory or os.environ.get("FAKES") or os.path.dirname(os.path.abspath(__file__)),
            variant)
        self.cudart = cudart
        self.kernel_library = kernels
        self._runtime = self._kernels = self._library = None
        self.driver = ctypes.CDLL(os.path.join(self.directory, "libcuda.so.1"))
        declare(self.driver, DRIVER)
        for name, letters in (("fake_cuda_set_kernel_ns", "sd"),
                              ("fake_cuda_set_kernel_params", "su"), ("fake_cuda_set_copy", "dd"),
                              ("fake_cuda_next_error", "siu"), ("fake_cuda_set_call_ns", "sd"),
                              ("fake_cuda_count", "ss"), ("fake_cuda_kernel", "ss"),
                              ("fake_cuda_total", "s"), ("fake_cuda_write_truth", "s"),
                              ("fake_cuda_set_tag", "u")):
            declare(self.driver, {name: letters})
        for name in ("fake_cuda_count", "fake_cuda_kernel", "fake_cuda_total"):
            getattr(self.driver, name).restype = ctypes.c_uint64
        self.contexts = {}
        if init:
            self.call("cuInit", 0)
            self.use(0)

    # ------------------------------------------------ entry points as they are

    def call(self, name, *arguments):
        """An entry point of libcuda.so.1."""
        call(self.driver, name, *arguments)

    def get(self, name, *arguments, kind=ctypes.c_void_p):
        """One whose first argument is a pointer to what it gives."""
        return get(self.driver, name, *arguments, kind=kind)

    @property
    def runtime(self):
        """libcudart.so, loaded when asked for."""
        if self._runtime is None:
            self._runtime = ctypes.CDLL(os.path.join(self.directory, self.cudart))
            declare(self._runtime, RUNTIME)
        return self._runtime

    def call_runtime(self, name, *arguments):
        call(self.runtime, name, *arguments)

    def get_runtime(self, name, *arguments, kind=ctypes.c_void_p):
        return get(self.runtime, name, *arguments, kind=kind)

    # ------------------------------------------------ devices, handles

    def use(self, device):
        """Makes the device's primary context the thread's."""
        if device not in self.contexts:
            self.contexts[device] = self.get("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxSetCurrent", self.contexts[device])

    def spin(self, device=0):
        """Threads wait for the device on the CPU from now on, as with CU_CTX_SCHED_SPIN."""
        self.call("cuDevicePrimaryCtxSetFlags_v2", device, 1)

    def kernel(self, name, ns=None, params=None, by="function"):
        """A handle of the kernel: by "module" (cuModuleGetFunction), "library" (a CUkernel), or
        "function" (cuKernelGetFunction of that)."""
        if ns is not None:
            self.driver.fake_cuda_set_kernel_ns(name.encode(), ns)
        if params is not None:
            self.driver.fake_cuda_set_kernel_params(name.encode(), params)
        if by == "module":
            return self.get("cuModuleGetFunction", self.get("cuModuleLoadData", b""),
                            name.encode())
        if self._library is None:
            self._library = self.get("cuLibraryLoadData", b"", None, None, 0, None, None, 0)
        kernel = self.get("cuLibraryGetKernel", self._library, name.encode())
        return kernel if by == "library" else self.get("cuKernelGetFunction", kernel)

    def stream(self):
        return self.get("cuStreamCreate", 1)

    def event(self):
        return self.get("cuEventCreate", 0)

    def allocate(self, size):
        return self.get("cuMemAlloc_v2", size, kind=ctypes.c_uint64)

    def free(self, pointer):
        self.call("cuMemFree_v2", pointer)

    # ------------------------------------------------ work

    def launch(self, kernel, grid=(1, 1, 1), block=(32, 1, 1), stream=None, smem=0, params=(),
               api="cuLaunchKernel"):
        """params: integers, 8 bytes each."""
        values = [ctypes.c_uint64(value) for value in params]
        pointers = (ctypes.c_void_p * max(1, len(values)))(
            *[ctypes.addressof(value) for value in values])
        if api.startswith("cuLaunchKernelEx"):
            config = LaunchConfig(tuple(grid), tuple(block), smem, stream, None, 0)
            self.call(api, ctypes.byref(config), kernel, pointers, None)
        elif api.startswith("cuLaunchCooperativeKernel"):
            self.call(api, kernel, *grid, *block, smem, stream, pointers)
        else:
            self.call(api, kernel, *grid, *block, smem, stream, pointers, None)

    def copy(self, direction, size, stream=None):
        """By the sync call, or the async one of a stream (0 is one, too)."""
        name = COPIES[direction][stream is None]
        first = HOST if direction == "dtoh" else DEVICE
        second = HOST if direction == "htod" else DEVICE
        self.call(name, first, second, size, *(() if stream is None else (stream,)))

    def synchronize(self, stream=None):
        if stream is None:
            self.call("cuCtxSynchronize")
        else:
            self.call("cuStreamSynchronize", stream)

    def run(self, name, count=1, stream=None, grid=1, block=32):
        """Kernels of libfakekernels.so (KERNELS), by their host stubs and cudart."""
        if self._kernels is None:
            self._kernels = ctypes.CDLL(os.path.join(self.directory, self.kernel_library))
            declare(self._kernels, {"fakekernels_" + short: "uuup" for short in KERNELS})
        error = getattr(self._kernels, "fakekernels_" + name)(count, grid, block, stream)
        if error:
            raise CudaError("fakekernels_" + name, error)

    # ------------------------------------------------ graphs

    @contextlib.contextmanager
    def capture(self, stream, mode=0, into=None):
        """Gives a ctypes pointer that is the graph's after the block."""
        graph = ctypes.c_void_p()
        if into is None:
            self.call("cuStreamBeginCapture_v2", stream, mode)
        else:
            self.call("cuStreamBeginCaptureToGraph", stream, into, None, None, 0, mode)
        yield graph
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))

    def instantiate(self, graph):
        return self.get("cuGraphInstantiateWithFlags", graph, 0)

    def graph(self):
        return self.get("cuGraphCreate", 0)

    def add(self, api, graph, params, *more):
        """A node, by the entry point that takes such."""
        node = ctypes.c_void_p()
        params = ctypes.byref(params) if isinstance(params, ctypes.Structure) else params
        edges = (None,) if api == "cuGraphAddNode_v2" else ()
        self.call(api, ctypes.byref(node), graph, None, *edges, 0, params, *more)

    def graph_launch(self, instance, stream=None):
        self.call("cuGraphLaunch", instance, stream)

    # ------------------------------------------------ what the stand-in knows

    def set_kernel_ns(self, name, ns):
        self.driver.fake_cuda_set_kernel_ns(name.encode(), ns)

    def set_copy(self, latency_ns=0, bytes_per_us=0):
        self.driver.fake_cuda_set_copy(latency_ns, bytes_per_us)

    def next_error(self, api, code, times=1):
        assert not self.driver.fake_cuda_next_error(api.encode(), code, times), api

    def set_call_ns(self, api, ns):
        assert not self.driver.fake_cuda_set_call_ns(api.encode(), ns), api

    def count(self, api, what="calls"):
        return self.driver.fake_cuda_count(api.encode(), what.encode())

    def kernel_count(self, name, what="calls"):
        return self.driver.fake_cuda_kernel(name.encode(), what.encode())

    def total(self, what):
        return self.driver.fake_cuda_total(what.encode())

    def set_tag(self, tag):
        """What the thread allocates from now on: truth()["live"][str(tag)] is [blocks, bytes]."""
        self.driver.fake_cuda_set_tag(tag)

    def reset(self):
        self.driver.fake_cuda_reset()

    def truth(self):
        """All counters, as $FAKE_CUDA_TRUTH has them at the end."""
        with tempfile.NamedTemporaryFile() as file:
            assert not self.driver.fake_cuda_write_truth(file.name.encode())
            with open(file.name, encoding="utf-8") as written:
                return json.load(written)
