# SPDX-License-Identifier: BSD-2-Clause
"""Launches a kernel of the stand-in of libcuda in $FAKES some 200 times a second."""
import time

import common
import fakecuda

cuda = fakecuda.Cuda()
kernel = cuda.kernel("_Z3addPfi", ns=1000)
common.ready()
while not common.stopped():
    cuda.launch(kernel, grid=(8, 1, 1))
    time.sleep(0.005)
