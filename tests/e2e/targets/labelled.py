# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""labelled.py HOW [SECRET]   Works until `stop`, so as HOW says: plain; titled (it writes a title
over its arguments and its environment, as setproctitle does, once `title` is there); fork (a child
works); spawn (a child of multiprocessing works); exec (it works, and then another program does, in
its place); drops (it is root until `drop` is there, then nobody).  Who works writes its pid to
workers.json."""
import ctypes
import multiprocessing
import os
import sys
import time

import common

TITLE = b"gunicorn: worker [somebody else]"


def work(until="stop"):
    common.write("workers.json", [os.getpid()])
    common.ready()
    go_on(until)


def go_on(until="stop"):
    while not any(os.path.exists(common.path(name)) for name in ("stop", until)):
        end = time.process_time() + 0.02
        while time.process_time() < end:
            sum(range(1000))
        time.sleep(0.04)


def take_title():
    """Fields 48 to 51 of proc_pid_stat(5)."""
    with open("/proc/self/stat") as file:
        words = file.read().rpartition(")")[2].split()
    start, end = int(words[45]), int(words[48])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, TITLE, len(TITLE))


def as_nobody():
    os.setresuid(65534, 65534, 65534)
    go_on()


def main(how):
    if how == "plain":
        work()
    elif how == "titled":
        work("title")
        take_title()
        common.write("titled.json", True)
        work()
    elif how == "fork":
        pid = os.fork()
        if not pid:
            work()
            os._exit(0)
        os.waitpid(pid, 0)
    elif how == "spawn":
        child = multiprocessing.get_context("spawn").Process(target=work)
        child.start()
        child.join()
    elif how == "drops":
        work("drop")
        as_nobody()
    elif how == "exec":
        work("exec")
        os.execv(sys.executable, [sys.executable, "-m", "labelled", "plain"] + sys.argv[2:])


if __name__ == "__main__":
    main(sys.argv[1])
