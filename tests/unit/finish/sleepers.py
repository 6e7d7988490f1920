# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Threads that sleep in all sorts of calls.  Prints where the interpreter says that they are:

    PID <pid>
    T <tid> <what it waits for>
    F <tid> <line> <name>           leaf to root
    END
"""
import os
import select
import socket
import sys
import threading
import time

try:
    import queue
except ImportError:
    import Queue as queue

ident = getattr(threading, "get_ident", None) or __import__("thread").get_ident
tids = {}
ready = threading.Semaphore(0)


def tid_of_this():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return int(os.readlink("/proc/thread-self").split("/")[-1])


def begin(reason):
    tids[ident()] = (tid_of_this(), reason)
    ready.release()


def in_sleep():
    begin("sleep")
    time.sleep(10000)


def in_lock():
    lock = threading.Lock()
    lock.acquire()
    begin("lock")
    lock.acquire()


def in_queue():
    begin("lock")
    queue.Queue().get()


def in_accept():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    begin("tcp socket")
    server.accept()


def in_pipe():
    pipe = os.pipe()
    begin("pipe")
    os.read(pipe[0], 1)


def in_poll():
    pipe = os.pipe()
    begin("poll")
    select.select([pipe[0]], [], [])


class Deep:
    """Python called by C called by Python: several runs."""

    def __init__(self, depth):
        self.depth = depth

    def __lt__(self, other):
        if self.depth:
            sorted([Deep(self.depth - 1), Deep(0)])
        time.sleep(10000)
        return True


def in_sort():
    begin("sleep")
    sorted([Deep(3), Deep(3)])


def look():
    """How often each thread was switched out, None while one of them runs; without /proc, as in a
    chroot, their lines."""
    counts = []
    if not os.path.exists("/proc/self/status"):
        return sorted((thread, frame.f_lineno) for thread, frame in sys._current_frames().items())
    for tid, _ in tids.values():
        with open("/proc/self/task/%d/status" % tid) as status:
            lines = dict(line.split(":", 1) for line in status)
        if lines["State"].split()[0] != "S":
            return None
        counts.append((lines["voluntary_ctxt_switches"], lines["nonvoluntary_ctxt_switches"]))
    return counts


def wait_for_rest():
    """Until all threads sleep and none has run since the last look.  Who waits for the GIL runs
    every 5 ms."""
    seen = None
    for _ in range(200):
        before, seen = seen, look()
        if seen and seen == before:
            return
        time.sleep(0.1)


def main():
    for function in (in_sleep, in_lock, in_queue, in_accept, in_pipe, in_poll, in_sort):
        thread = threading.Thread(target=function)
        thread.daemon = True
        thread.start()
        ready.acquire()
    wait_for_rest()
    out = ["PID %d" % os.getpid()]
    for thread, frame in sys._current_frames().items():
        if thread not in tids:
            continue
        out.append("T %d %s" % tids[thread])
        while frame:
            code = frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            out.append("F %d %d %s" % (tids[thread][0], frame.f_lineno, name))
            frame = frame.f_back
    print("\n".join(out + ["END"]))
    sys.stdout.flush()
    time.sleep(120)


main()
