# SPDX-License-Identifier: BSD-2-Clause
"""Threads whose waits are known: one naps, one waits for a lock that is never free, one reads a
pipe that brings a byte now and then, one sleeps since long before the profile."""
import os
import threading
import time

LOCK = threading.Lock()
READ, WRITE = os.pipe()


def nap():
    time.sleep(0.05)


def napper():
    while True:
        nap()


def locker():
    while not LOCK.acquire(timeout=0.3):
        pass


def reader():
    while True:
        os.read(READ, 1)


def sleeper():
    time.sleep(100000)


LOCK.acquire()
for function in (napper, locker, reader, sleeper):
    threading.Thread(target=function, name=function.__name__).start()
open("/tmp/waits-ready", "w").close()
while True:
    os.write(WRITE, b"x")
    time.sleep(0.2)
