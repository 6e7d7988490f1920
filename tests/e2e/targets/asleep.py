# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Threads that sleep in all sorts of calls until the end, one that a byte in the FIFO `wake` wakes
up, and one that exits after its byte.  Writes threads.json: name -> [tid, line of its call]."""
import inspect
import os
import queue
import select
import socket
import threading
import time

import common

LOCK = threading.Lock()
LEFT, RIGHT = socket.socketpair()


def in_sleep():
    time.sleep(1000)


def in_lock():
    LOCK.acquire()


def in_recv():
    LEFT.recv(1)


def in_select():
    select.select([LEFT], [], [])


def in_queue():
    queue.Queue().get()


def that_wakes():
    os.read(WAKE, 1)
    time.sleep(1000)


def that_exits():
    os.read(EXIT, 1)


def line_of(function):
    return inspect.getsourcelines(function)[1] + 1


def main():
    global WAKE, EXIT
    threads = {}
    for name in ("wake", "exit"):
        os.mkfifo(common.path(name))
    # Opened for both: neither open() nor read() ends before the byte.
    WAKE = os.open(common.path("wake"), os.O_RDWR)
    EXIT = os.open(common.path("exit"), os.O_RDWR)
    LOCK.acquire()
    for function in (in_sleep, in_lock, in_recv, in_select, in_queue, that_wakes, that_exits):
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        threads[function.__name__] = [thread.native_id, line_of(function)]
    time.sleep(0.3)
    common.write("threads.json", threads)
    common.ready()
    # Only signals end it: it is to sleep as well.
    LOCK.acquire()


if __name__ == "__main__":
    main()
