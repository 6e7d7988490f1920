# SPDX-License-Identifier: BSD-2-Clause
"""gpu_pure.py   pure.py in a process that has used a stand-in of CUDA ($FAKES), and has
synchronised its context once somebody may have seen it: from `go` on, until `stop`."""
import os
import time

import common
import fakecuda
import pure


def main():
    cuda = fakecuda.Cuda()
    kernel, stream = cuda.kernel("_Z3addPfi"), cuda.stream()
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.002)
    while not common.stopped():
        pure.one_round()
        cuda.launch(kernel, stream=stream)
        cuda.synchronize()


main()
