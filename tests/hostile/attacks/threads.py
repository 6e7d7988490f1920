# SPDX-License-Identifier: BSD-2-Clause
"""Fifteen hundred threads that wake one another and end, new ones in their place."""
import threading
import time

import craft  # noqa: F401

COUNT = 1500


def attack(box):
    threading.stack_size(1 << 16)
    step = threading.Event()

    def live(number):
        for _ in range(5 + number % 7):
            step.wait(0.5)
    threads = [threading.Thread(target=live, args=(i,), daemon=True) for i in range(COUNT)]
    for each in threads:
        each.start()
    box.ready()
    while True:
        step.set()
        step.clear()
        threads = [each for each in threads if each.is_alive()]
        for i in range(COUNT - len(threads)):
            threads.append(threading.Thread(target=live, args=(i,), daemon=True))
            threads[-1].start()
        time.sleep(0.01)
