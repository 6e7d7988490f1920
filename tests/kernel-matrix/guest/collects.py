# SPDX-License-Identifier: BSD-2-Clause
"""collects.py NUMBER   Once /tmp/go is there, so many collections by hand; then it waits."""
import gc
import os
import sys
import time

gc.disable()
open("/tmp/collects-ready", "w").close()
while not os.path.exists("/tmp/go"):
    time.sleep(0.05)
for _ in range(int(sys.argv[1])):
    gc.collect()
open("/tmp/collects-done", "w").close()
time.sleep(1000)
