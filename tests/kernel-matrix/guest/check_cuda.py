# SPDX-License-Identifier: BSD-2-Clause
"""check_cuda.py calls PROFILE   Does it have every call of cuda.c?
check_cuda.py soak LAUNCHES PROFILE...   And of each window, when it launched for long?  Are the
stacks of each thread's own functions?"""
import collections
import os
import re
import sys

import pprof

LAUNCHES, KERNELS, SYNCS, BYTES = 64 * 400, 8, 20, 1000
CAPTURED, GRAPHS = 100, 10
# Before Linux 6.6 captures are not seen, and what they record seems to be run.
SEES_CAPTURES = [int(n) for n in os.uname().release.split(".")[:2]] >= [6, 6]
WHOLE_LEAST = 0.9  # the others may be torn, or come late on an emulated machine


def is_mixed(names):
    """Whether a stack has functions of two threads, or of none in what only threads call."""
    threads = {name for name in names if re.match(r"thread_\d\d$", name)}
    return len(threads) > 1 or (not threads and bool({"drive", "compute"} & set(names)))


def calls(path):
    calls, waits, amounts, kernels = (collections.Counter() for _ in range(4))
    mixed = 0
    for sample in pprof.load(path).samples:
        if "api" not in sample.labels:
            continue  # a record (kind gpu), whose values stand behind those of calls
        api = sample.labels["api"]
        calls[api] += sample.values[0]
        waits[api] += sample.values[2]
        amounts[api] += sample.values[3]
        # kernel@0xHANDLE (FILE)
        kernels[sample.labels.get("kernel", "").split(" ")[0]] += sample.values[0]
        named = [f.name for f in sample.frames]
        if api == "cuLaunchKernel" and len(named) > 2:
            mixed += named[1] != "cuLaunchKernel" or is_mixed(named) or not any(
                re.match("launch_all|capture", name) for name in named)
    print("guest: cuda: %s, %d kernels, %.1f ms in synchronisations, %d bytes, %d wrong stacks"
          % (dict(calls), len(kernels) - 1, waits["cuStreamSynchronize"] / 1e6,
             amounts["cuMemcpyHtoDAsync"], mixed))
    run = 0 if SEES_CAPTURES else CAPTURED
    return (calls == {"cuLaunchKernel": LAUNCHES + run, "cuStreamSynchronize": SYNCS,
                      "cuMemcpyHtoDAsync": SYNCS, "cuGraphLaunch": GRAPHS} and not mixed and
            sorted(count for name, count in kernels.items() if name) ==
            [LAUNCHES // KERNELS] * (KERNELS - 1) + [LAUNCHES // KERNELS + run] and
            amounts["cuMemcpyHtoDAsync"] == SYNCS * BYTES and waits["cuStreamSynchronize"] > 0)


def soak(launches, *paths):
    found = collections.Counter()
    for path in paths:
        kind = re.sub(r".*-|\.pb\.gz$", "", path)
        for sample in pprof.load(path).samples:
            # [other stacks], and what is not the threads' own work
            names = [f.name for f in sample.frames]
            if kind == "cuda" and sample.labels["api"] == "cuLaunchKernel":
                found["launches"] += sample.values[0]
            if not {"drive", "launch_all", "compute"} & set(names):
                continue
            whole = any(re.match(r"thread_\d\d$", name) for name in names)
            found[kind] += sample.values[0]
            found[kind + " whole"] += sample.values[0] * whole
            if len({n for n in names if re.match(r"thread_\d\d$", n)}) > 1:
                found["mixed"] += 1
                print("guest: soak: of two threads: %s" % ";".join(names)[:300])
    print("guest: soak: %s, the program launched %s in threads" % (dict(found), launches))
    run = 0 if SEES_CAPTURES else CAPTURED
    return (found["launches"] == int(launches) + run and not found["mixed"] and found["cpu"] > 0 and
            found["cpu whole"] >= WHOLE_LEAST * found["cpu"] and
            found["cuda whole"] >= WHOLE_LEAST * found["cuda"])


if __name__ == "__main__":
    sys.exit(0 if (calls if sys.argv[1] == "calls" else soak)(*sys.argv[2:]) else 1)
