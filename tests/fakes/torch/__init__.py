# SPDX-License-Identifier: BSD-2-Clause
"""Stands in for torch where there is neither it nor a GPU: as much as tests/gpu/torch_load.py asks
of it, by the stand-ins of CUDA's libraries in $FAKES.  Kernels are launched from host stubs through
cudart, as torch's are."""
import contextlib
import types

import fakecuda

__version__ = "0.0-stand-in"
version = types.SimpleNamespace(cuda="13.0")
uint8 = "uint8"
_SLEEP = "softmax"  # the kernel that takes time
# As torch.profiler has names.
_DEMANGLED = {"vector_add": "vectorAdd(float const*, float const*, float*, int)",
              "matmul": "void fake::matmul<float, 16>(float const*, float const*, float*, int)"}

_cuda = fakecuda.Cuda()
_stream = [_cuda.stream()]


class _Tensor:
    def __init__(self, size):
        self.size = size

    def add_(self, _):
        _launch("vector_add")

    def copy_(self, other, non_blocking=False):
        _copy(fakecuda.DEVICE, fakecuda.HOST, other.size, 1)
        if not non_blocking:
            _cuda.call_runtime("cudaStreamSynchronize", _stream[0])

    def item(self):
        _copy(fakecuda.HOST, fakecuda.DEVICE, self.element_size(), 2)
        _cuda.call_runtime("cudaStreamSynchronize", _stream[0])

    def element_size(self):
        return 4


def _copy(to, source, size, kind):
    _cuda.call_runtime("cudaMemcpyAsync", to, source, size, kind, _stream[0])


def _launch(name):
    _cuda.run(name, 1, _stream[0])


def zeros(size, **_):
    return _Tensor(size or 1)


def ones(*sizes, **_):
    return _Tensor(sizes[0] * sizes[1])


def mm(_a, _b):
    _launch("matmul")


# ---------------------------------------------------------------- torch.cuda

class _Event:
    def __init__(self, enable_timing=False):
        del enable_timing
        self.handle = _cuda.event()

    def record(self):
        _cuda.call("cuEventRecord", self.handle, _stream[0])

    def elapsed_time(self, end):
        return _cuda.get("cuEventElapsedTime", self.handle, end.handle, kind=_float)


class _Graph:
    instance = None

    def replay(self):
        _cuda.call_runtime("cudaGraphLaunch", self.instance, _stream[0])


@contextlib.contextmanager
def _graph(graph):
    with _cuda.capture(_stream[0]) as captured:
        yield
    graph.instance = _cuda.instantiate(captured)


def _sleep(cycles):
    """At 1 GHz."""
    _cuda.set_kernel_ns(fakecuda.KERNELS[_SLEEP], cycles)
    _launch(_SLEEP)


_float = fakecuda.ctypes.c_float
cuda = types.SimpleNamespace(
    is_available=lambda: True, synchronize=lambda: _cuda.call_runtime("cudaDeviceSynchronize"),
    Event=_Event, CUDAGraph=_Graph, graph=_graph, _sleep=_sleep)


# ---------------------------------------------------------------- torch.profiler

class _Profile:
    """By what the driver has counted meanwhile."""

    def __init__(self, activities):
        del activities
        self.found = []

    def _counts(self):
        return {name: _cuda.kernel_count(fakecuda.KERNELS[short])
                for short, name in _DEMANGLED.items()}

    def __enter__(self):
        self.before = self._counts()
        return self

    def __exit__(self, *_):
        for name, count in self._counts().items():
            for _ in range(count - self.before[name]):
                self.found.append(types.SimpleNamespace(name=name, device_type="CUDA"))
                self.found.append(types.SimpleNamespace(name="cudaLaunchKernel",
                                                        device_type="CPU"))

    def events(self):
        return self.found


profiler = types.SimpleNamespace(
    profile=_Profile, ProfilerActivity=types.SimpleNamespace(CPU="CPU", CUDA="CUDA"))
