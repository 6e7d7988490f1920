# SPDX-License-Identifier: BSD-2-Clause
"""A thread that sleeps in C with the GIL in its hands, and the main thread, which waits for it.

    PID <pid>
    T <tid> sleep
    T <tid> gil
    END
"""
import ctypes
import os
import sys
import threading
import time

go = threading.Event()
tids = []


def hold():
    tids.append(threading.get_native_id())
    go.wait()
    ctypes.PyDLL(None).usleep(60000000)


thread = threading.Thread(target=hold)
thread.daemon = True
thread.start()
while not tids:
    time.sleep(0.01)
print("PID %d\nT %d sleep\nT %d gil\nEND" % (os.getpid(), tids[0], threading.get_native_id()))
sys.stdout.flush()
go.set()
time.sleep(0.1)
