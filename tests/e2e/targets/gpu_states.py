# SPDX-License-Identifier: BSD-2-Clause
"""gpu_states.py MODE   A program with a stand-in of CUDA ($FAKES), which is ready before anybody
looks.  From the file `go` on it does what the function of this name says; truth.json is what the
library knows then, spans.json what the program knows.  3.8 and later."""
import json
import os
import sys
import threading
import time

import common
import fakecuda

MS = 1000000  # ns
ADD = "_Z3addPfi"
ROUNDS = 30
FIRST = []  # the stream that has work before anybody looks
BEFORE = []  # ns from when states are known to when the library counts


def busy(seconds):
    """In Python for so long, by this thread's own clock."""
    until, total = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        for i in range(200):
            total += i
    return total


def busy_queued(seconds):
    busy(seconds)


def busy_drained(seconds):
    busy(seconds)


def known(cuda):
    """Nothing is queued that nobody has seen, and from now on the library counts."""
    begin = time.monotonic_ns()
    cuda.synchronize()
    cuda.reset()
    cuda.synchronize()
    BEFORE.append(time.monotonic_ns() - begin)


def end(cuda, kernel, stream):
    """The last interval of the truth ends here, and not when it is asked for."""
    cuda.launch(kernel, stream=stream)


def rounds(cuda):
    """Queued, waiting, drained, in turn."""
    kernel, stream = cuda.kernel(ADD, ns=60 * MS), cuda.stream()
    known(cuda)
    for _ in range(ROUNDS):
        cuda.launch(kernel, stream=stream)
        busy_queued(0.02)
        cuda.synchronize(stream)
        busy_drained(0.04)
    end(cuda, kernel, stream)


def spinning(cuda):
    """The same, and nothing else to do while it waits."""
    kernel, stream = cuda.kernel(ADD, ns=60 * MS), cuda.stream()
    cuda.spin()
    known(cuda)
    for _ in range(ROUNDS):
        cuda.launch(kernel, stream=stream)
        cuda.synchronize(stream)
        busy_drained(0.02)
    end(cuda, kernel, stream)


def copies(cuda):
    """Sync copies wait, and leave nothing behind but those to the device."""
    cuda.set_copy(latency_ns=20 * MS)
    kernel = cuda.kernel(ADD, ns=5 * MS)
    known(cuda)
    for _ in range(ROUNDS):
        cuda.launch(kernel)
        cuda.synchronize(0)
        cuda.copy("dtoh", 100)
        busy_drained(0.02)
    for direction in ("htod", "dtod"):
        cuda.copy(direction, 100)
        busy_queued(0.25)
        cuda.synchronize()
        busy_drained(0.1)


def whole(cuda):
    """Who has seen all calls knows of each stream."""
    cuda.synchronize(FIRST[0])
    unknown(cuda)


def unknown(cuda):
    """No synchronisation of the context: who comes late cannot know what was queued before."""
    kernel, stream = cuda.kernel(ADD, ns=20 * MS), cuda.stream()
    for _ in range(ROUNDS):
        cuda.launch(kernel, stream=stream)
        busy_queued(0.005)
        cuda.synchronize(stream)
        busy_drained(0.02)


def events(cuda):
    """An event says nothing about the rest of its stream."""
    kernel, stream, event = cuda.kernel(ADD, ns=20 * MS), cuda.stream(), cuda.event()
    known(cuda)
    for _ in range(ROUNDS):
        cuda.launch(kernel, stream=stream)
        cuda.call("cuEventRecord", event, stream)
        cuda.call("cuEventSynchronize", event)
        busy_queued(0.02)


def errors(cuda):
    """A synchronisation that fails has waited for nothing."""
    kernel, stream = cuda.kernel(ADD, ns=400 * MS), cuda.stream()
    known(cuda)
    busy_drained(0.1)
    cuda.launch(kernel, stream=stream)
    for api, wait in (("cuStreamSynchronize", lambda: cuda.synchronize(stream)),
                      ("cuCtxSynchronize", cuda.synchronize)):
        cuda.next_error(api, 700)
        try:
            wait()
            raise AssertionError(api)
        except fakecuda.CudaError:
            busy_queued(0.1)
    cuda.synchronize(stream)
    busy_drained(0.1)


def several(cuda):
    """Streams and their twins: all of them must be empty, and each synchronisation counts for its
    own."""
    kernel = cuda.kernel(ADD, ns=5 * MS)
    streams = [cuda.stream() for _ in range(3)]
    apis = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel")
    known(cuda)
    for _ in range(ROUNDS):
        for stream, api in zip(streams, apis):
            cuda.launch(kernel, stream=stream, api=api)
        cuda.launch(kernel)                                # the legacy stream
        cuda.launch(kernel, api="cuLaunchKernel_ptsz")     # the thread's own
        cuda.launch(kernel, stream=2)                      # the same
        for stream in streams + [0]:
            cuda.synchronize(stream)
            busy_queued(0.005)
        cuda.call("cuStreamSynchronize_ptsz", 0)
        busy_drained(0.02)
        cuda.copy("htod", 100, streams[0])
        busy_queued(0.005)
        cuda.synchronize()
        busy_drained(0.02)
    end(cuda, kernel, streams[0])


def contexts(cuda):
    """A context's synchronisation says nothing about another one's streams."""
    kernel = cuda.kernel(ADD, ns=200 * MS)
    cuda.use(0)
    cuda.synchronize()
    cuda.use(1)
    known(cuda)
    busy_drained(0.1)
    cuda.launch(kernel)
    cuda.use(0)
    cuda.synchronize()
    busy_queued(0.1)
    cuda.use(1)
    cuda.synchronize()
    busy_drained(0.1)
    end(cuda, kernel, 0)


def destroyed(cuda):
    """What a stream had queued when it was destroyed still runs."""
    kernel, stream = cuda.kernel(ADD, ns=300 * MS), cuda.stream()
    known(cuda)
    cuda.launch(kernel, stream=stream)
    cuda.call("cuStreamDestroy_v2", stream)
    busy_queued(0.1)
    cuda.synchronize(0)
    busy_queued(0.1)
    cuda.synchronize()
    busy_drained(0.1)
    end(cuda, kernel, 0)


def race(cuda):
    """One thread synchronises a stream and the context, while others launch into that stream: from
    time to time all rest."""
    kernel, stream = cuda.kernel(ADD, ns=MS // 5), cuda.stream()
    until, gates = time.monotonic() + 2.5, [threading.Event() for _ in range(3)]

    def launches(gate):
        cuda.use(0)
        while time.monotonic() < until:
            gate.wait(0.1)
            for _ in range(50):
                cuda.launch(kernel, stream=stream)
            gate.clear()

    known(cuda)
    threads = [threading.Thread(target=launches, args=(gate,)) for gate in gates]
    for thread in threads:
        thread.start()
    count = 0
    while time.monotonic() < until:
        count += 1
        for gate in gates:
            gate.set()
        for _ in range(count % 20):
            cuda.synchronize(stream if count % 2 else None)
        if not count % 5:
            time.sleep(0.02)
            cuda.synchronize(stream)
            time.sleep(0.02)
    for thread in threads:
        thread.join()
    end(cuda, kernel, stream)


def captured(cuda):
    """What a graph records is not queued; what its launch runs is."""
    kernel, stream = cuda.kernel(ADD, ns=20 * MS), cuda.stream()
    known(cuda)
    for _ in range(ROUNDS // 3):
        with cuda.capture(stream) as graph:
            for _ in range(5):
                cuda.launch(kernel, stream=stream)
            busy_drained(0.02)
        busy_drained(0.02)
        instance = cuda.instantiate(graph)
        cuda.graph_launch(instance, stream)
        busy_queued(0.02)
        cuda.synchronize(stream)
    end(cuda, kernel, stream)


def many(cuda):
    """More launches than a budget allows; all is done when it has synchronised."""
    kernel, stream = cuda.kernel(ADD, ns=0), cuda.stream()
    known(cuda)
    until, launches = time.monotonic() + 6, 0
    while time.monotonic() < until or launches < 24000:
        for _ in range(200):
            cuda.launch(kernel, stream=stream)
        launches += 200
        cuda.synchronize()
        busy_drained(0.001)


def works():
    cuda = fakecuda.Cuda()
    FIRST.append(cuda.stream())
    cuda.launch(cuda.kernel(ADD, ns=MS), stream=FIRST[0])
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.01)
    globals()[sys.argv[1]](cuda)
    common.write("truth.json", {**cuda.truth(), "before_ns": sum(BEFORE)})
    common.write("done", 0)
    while not common.stopped():
        time.sleep(0.01)


works()
