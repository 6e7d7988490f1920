# SPDX-License-Identifier: BSD-2-Clause
"""Never imports `threading`.  Prints whether something else did: PID <pid>, then IMPORTED 0 or
1."""
import os
import sys
import time

print("PID %d\nIMPORTED %d\nEND" % (os.getpid(), "threading" in sys.modules))
sys.stdout.flush()
time.sleep(120)
