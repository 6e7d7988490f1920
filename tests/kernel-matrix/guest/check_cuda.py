# SPDX-License-Identifier: BSD-2-Clause
"""check_cuda.py PROFILE   Does it have every call of cuda.c?"""
import collections
import os
import re
import sys

import pprof

LAUNCHES, KERNELS, SYNCS, BYTES = 64 * 400, 8, 20, 1000
CAPTURED, GRAPHS = 100, 10
# Before Linux 6.6 captures are not seen, and what they record seems to be run.
SEES_CAPTURES = [int(n) for n in os.uname().release.split(".")[:2]] >= [6, 6]


def main():
    calls, waits, amounts, kernels = (collections.Counter() for _ in range(4))
    mixed = 0
    for sample in pprof.load(sys.argv[1]).samples:
        api = sample.labels["api"]
        calls[api] += sample.values[0]
        waits[api] += sample.values[2]
        amounts[api] += sample.values[3]
        # kernel@0xHANDLE (FILE)
        kernels[sample.labels.get("kernel", "").split(" ")[0]] += sample.values[0]
        named = [f.name for f in sample.frames]
        if api == "cuLaunchKernel" and len(named) > 2:
            mixed += named[1] != "cuLaunchKernel" or not any(
                re.match("launch_all|drive_thread|capture", name) for name in named)
    print("guest: cuda: %s, %d kernels, %.1f ms in synchronisations, %d bytes, %d wrong stacks"
          % (dict(calls), len(kernels) - 1, waits["cuStreamSynchronize"] / 1e6,
             amounts["cuMemcpyHtoDAsync"], mixed))
    run = 0 if SEES_CAPTURES else CAPTURED
    return (calls == {"cuLaunchKernel": LAUNCHES + run, "cuStreamSynchronize": SYNCS,
                      "cuMemcpyHtoDAsync": SYNCS, "cuGraphLaunch": GRAPHS} and not mixed and
            sorted(count for name, count in kernels.items() if name) ==
            [LAUNCHES // KERNELS] * (KERNELS - 1) + [LAUNCHES // KERNELS + run] and
            amounts["cuMemcpyHtoDAsync"] == SYNCS * BYTES and waits["cuStreamSynchronize"] > 0)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
