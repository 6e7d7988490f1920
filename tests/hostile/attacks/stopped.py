# SPDX-License-Identifier: BSD-2-Clause
"""Programs that are stopped and go on a thousand times a second, threads whose leader has gone, and
dead whom nobody collects."""
import os
import random
import signal
import threading
import time

import craft

COUNT = 60


def leaderless():
    threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)], daemon=False).start()
    craft.libc.syscall(60, 0)  # exit of this thread alone


def attack(box):
    craft.needs_x86()
    pids = []
    for i in range(COUNT):
        pid = os.fork()
        if pid == 0:
            if i % 4 == 1:
                leaderless()
            elif i % 4 == 2:
                os._exit(0)
            while True:
                sum(range(3000))
                time.sleep(0.01)
        pids.append(pid)
    box.ready()
    while True:
        os.kill(random.choice(pids), random.choice([signal.SIGSTOP, signal.SIGCONT]))
        time.sleep(0.001)
