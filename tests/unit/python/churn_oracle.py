# SPDX-License-Identifier: BSD-2-Clause
"""Starts and ends threads as fast as it can, for a reader that races with it.

    PID <pid>
    END
"""
import os
import sys
import threading
import time


def main():
    print("PID %d\nEND" % os.getpid())
    sys.stdout.flush()
    end = time.time() + 120
    while time.time() < end:
        threads = [threading.Thread(target=time.sleep, args=(0.0002,), name="churn-%d" % i)
                   for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main()
