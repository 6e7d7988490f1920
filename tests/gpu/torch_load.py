# SPDX-License-Identifier: BSD-2-Clause
"""torch_load.py WORK... [--handles FILE]   Has torch do what can be counted, once there are probes,
and prints what it knows of it: lines of fields set apart by tabs.  3.8 and later.

  torch VERSION CUDA        ready PID WORK, done WORK: probes may come, and go
  launches WORK COUNT HOW   kernels launched, and how that is known
  graph WORK NODES COUNT    replays of a graph of so many kernels
  bytes WORK DIRECTION N    copied           wait WORK COUNT NS   in .item(), as the thread sees it
  kernel WORK NAME COUNT    by torch.profiler, for one step of the work, and `steps WORK N`
  idle WORK MS MS ROUNDS    nothing queued, as the thread sees it; nothing to do, by events of CUDA
  handle HANDLE KIND NAME   what the driver says of the handles in FILE
  without WORK REASON       it cannot be done here
"""
import ctypes
import os
import sys
import time

import torch

# Entries whose code tells whether there are probes.
WATCHED = ("cuLaunchKernel", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch")
LIMIT_S = 40
PAUSE_S = float(os.environ.get("PAUSE_S") or 1)  # further links; pyprofd's run begins behind them
ADDS, MATMULS, REPLAYS, NODES, ITEMS, ROUNDS = 1000, 200, 100, 10, 50, 30
COPY_BYTES = 1 << 20

driver = ctypes.CDLL("libcuda.so.1")


def say(*fields):
    print(*fields, sep="\t", flush=True)


def code():
    return [ctypes.string_at(ctypes.cast(getattr(driver, name), ctypes.c_void_p).value, 16)
            for name in WATCHED]


BEFORE = code()


def await_code(condition):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if condition([now != before for now, before in zip(code(), BEFORE)]):
            return True
        time.sleep(0.01)
    return False


class Sleeper:
    """Kernels of a given length."""

    def __init__(self):
        cycles = 10000000
        torch.cuda._sleep(cycles)
        torch.cuda.synchronize()
        begin, end = events(2)
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        torch.cuda.synchronize()
        self.cycles_per_ms = cycles / begin.elapsed_time(end)

    def __call__(self, ms):
        torch.cuda._sleep(int(self.cycles_per_ms * ms))


def events(count):
    return [torch.cuda.Event(enable_timing=True) for _ in range(count)]


def compute(ms):
    end = time.monotonic() + ms / 1e3
    while time.monotonic() < end:
        sum(range(100))


# ---------------------------------------------------------------- works: a step, and how often

def eager():
    x = torch.zeros(1024, device="cuda")
    return lambda: x.add_(1), ADDS


def matmul():
    a = torch.ones(256, 256, device="cuda")
    return lambda: torch.mm(a, a), MATMULS


def graph():
    x = torch.zeros(1024, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        for _ in range(NODES):
            x.add_(1)
    say("graph", "graph", NODES, REPLAYS)
    return made.replay, REPLAYS


def triton():
    import triton as compiler  # pylint: disable=import-outside-toplevel
    import triton.language as tl  # pylint: disable=import-outside-toplevel

    @compiler.jit
    def add_one(pointer, size: tl.constexpr):
        offsets = tl.arange(0, size)
        tl.store(pointer + offsets, tl.load(pointer + offsets) + 1)
    x = torch.zeros(1024, device="cuda")
    return lambda: add_one[(1,)](x, 1024), MATMULS


def item():
    sleep = Sleeper()
    value = torch.zeros((), device="cuda")
    host = torch.zeros(COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.zeros(COPY_BYTES, dtype=torch.uint8, device="cuda")
    waits = []

    def step():
        there.copy_(host, non_blocking=True)
        sleep(5)
        began = time.perf_counter_ns()
        value.item()
        waits.append(time.perf_counter_ns() - began)
        if len(waits) == ITEMS:
            say("wait", "item", ITEMS, sum(waits))
            say("bytes", "item", "HtoD", ITEMS * COPY_BYTES)
            say("bytes", "item", "DtoH", ITEMS * value.element_size())
    return step, ITEMS


def drained():
    sleep = Sleeper()
    begins, ends = events(ROUNDS + 1), events(ROUNDS + 1)
    free = []  # when the thread has nothing queued: until, since, until, ...

    def launch(number, ms):
        begins[number].record()
        free.append(time.perf_counter_ns())
        sleep(ms)

    def step():
        number = len(free) // 2
        launch(number, 20)
        ends[number].record()
        compute(10)
        torch.cuda.synchronize()
        free.append(time.perf_counter_ns())
        compute(15)
        if number + 1 < ROUNDS:
            return
        launch(ROUNDS, 2000)  # something is queued when pyprofd goes
        time.sleep(0.05)
        say("idle", "drained",
            "%.3f" % (sum(end - begin for begin, end in zip(free[1::2], free[2::2])) / 1e6),
            "%.3f" % sum(end.elapsed_time(begin) for end, begin in zip(ends, begins[1:])), ROUNDS)
    return step, ROUNDS


WORKS = {work.__name__: work for work in (eager, matmul, graph, triton, item, drained)}
COUNTED = ("eager", "matmul", "triton")


def look(name, step):
    """One step as torch.profiler sees it."""
    step()
    torch.cuda.synchronize()
    try:
        activity = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profiler:
            step()
            torch.cuda.synchronize()
        found = list(profiler.events())
    except Exception as error:  # pylint: disable=broad-except
        return 1, "one a step; torch.profiler: %s" % type(error).__name__
    kernels = {}
    for event in found:
        if str(event.device_type).endswith("CUDA") and not event.name.startswith("Mem"):
            kernels[event.name] = kernels.get(event.name, 0) + 1
    for kernel, count in kernels.items():
        say("kernel", name, kernel.replace("\t", " "), count)
    launches = sum("LaunchKernel" in event.name for event in found)
    if not launches:
        return 1, "one a step; torch.profiler saw none"
    return launches, "torch.profiler"


def do(name):
    try:
        step, steps = WORKS[name]()
        launches, how = look(name, step) if name in COUNTED else (0, "")
    except ImportError as error:
        say("without", name, "no %s" % error.name)
        return
    torch.cuda.synchronize()
    say("ready", os.getpid(), name)
    if not await_code(all):
        say("without", name, "no probe came into the driver's code")
        return
    time.sleep(PAUSE_S)
    for _ in range(steps):
        step()
    if name != "drained":
        torch.cuda.synchronize()
    if launches:
        say("launches", name, launches * steps, how)
        say("steps", name, steps)
    say("done", name)
    await_code(lambda changed: not any(changed))


def ask_handles(path):
    """What kind of handle the driver takes each for."""
    with open(path, encoding="ascii") as file:
        handles = file.read().split()
    for handle in handles:
        for kind, name in (("CUfunction", "cuFuncGetName"), ("CUkernel", "cuKernelGetName")):
            text = ctypes.c_char_p()
            ask = getattr(driver, name, None)
            if ask and not ask(ctypes.byref(text), ctypes.c_void_p(int(handle, 16))):
                say("handle", handle, kind, text.value.decode())


def main():
    words = sys.argv[1:]
    handles = words.pop(words.index("--handles") + 1) if "--handles" in words else None
    say("torch", torch.__version__, torch.version.cuda)
    if not torch.cuda.is_available():
        sys.exit("torch finds no GPU")
    for name in words:
        if name in WORKS:
            do(name)
    if handles:
        say("works-done")
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(handles) and time.monotonic() < end:
            time.sleep(0.05)
        ask_handles(handles)


main()
