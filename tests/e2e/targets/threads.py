# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Named threads that compute, compute without the GIL, sleep, and wait for a lock."""
import hashlib
import threading
import time

import common

lock = threading.Lock()
BLOCK = b"x" * (1 << 22)


def spin():
    total = 0
    while not common.stopped():
        for number in range(200000):
            total += number * number


def digest():
    """hashlib lets go of the GIL for blocks above 2 KiB."""
    while not common.stopped():
        for _ in range(10):
            hashlib.sha256(BLOCK).digest()


def sleep_long():
    while not common.stopped():
        time.sleep(0.5)


def wait_lock():
    lock.acquire()


def main():
    lock.acquire()
    tids = {}

    def run(function):
        tids[threading.current_thread().name] = threading.get_native_id()
        function()

    work = {"the-spinner": spin, "the-hasher": digest, "the-sleeper": sleep_long,
            "the-waiter": wait_lock}
    for name, function in work.items():
        threading.Thread(target=run, args=(function,), name=name, daemon=True).start()
    time.sleep(0.2)
    common.write("tids.json", tids)
    common.ready()
    while not common.stopped():
        time.sleep(0.05)


if __name__ == "__main__":
    main()
