# SPDX-License-Identifier: BSD-2-Clause
"""Threads that sleep, wait for a lock, and fight for the GIL; the first two write down when, by
CLOCK_MONOTONIC."""
import threading
import time

import common

SLEEP_S = 0.1
LOCK_S = 0.15
lock = threading.Lock()
turns = {"the-sleeper": [], "the-waiter": []}


def spin():
    while not common.stopped():
        for _ in range(200000):
            pass


def sleep_often():
    while not common.stopped():
        begin = time.monotonic()
        time.sleep(SLEEP_S)
        turns["the-sleeper"].append((begin, time.monotonic()))


def wait_lock():
    while not common.stopped():
        begin = time.monotonic()
        lock.acquire()
        turns["the-waiter"].append((begin, time.monotonic()))


def release():
    if lock.locked():
        lock.release()


def main():
    lock.acquire()
    tids = {}

    def run(function):
        tids[threading.current_thread().name] = threading.get_native_id()
        function()

    work = (("the-spinner-1", spin), ("the-spinner-2", spin), ("the-sleeper", sleep_often),
            ("the-waiter", wait_lock))
    threads = [threading.Thread(target=run, args=(function,), name=name) for name, function in work]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    common.write("tids.json", tids)
    common.ready()
    while not common.stopped():
        time.sleep(LOCK_S)
        release()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.05)
            release()
    common.write("turns.json", turns)


if __name__ == "__main__":
    main()
