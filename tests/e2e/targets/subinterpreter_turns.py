# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""subinterpreter_turns.py HOW: threads that leave the GIL inside of several interpreters: they
wait, and compute without it.  HOW: `apart`: the other interpreter has a thread of its own;
`nested`: the main thread goes into it and back; `served`: interpreters_of_thread.so in E2E_DIR has
a thread that serves two in turn, the main thread is in the main one; `asleep`: as apart, but both
threads sleep until the program is killed. main.json, sub.json, other.json: of each interpreter
{"wait": [[begin, end, ns]], "digest": [[begin, end, CPU ns]]}, ns of CLOCK_REALTIME.  3.6 and
later."""
import ctypes
import os
import sys
import threading

import common
import subinterpreters
import turns_work as work

DIRECTORY = os.path.dirname(os.path.abspath(__file__))
BEGIN = "import sys\nsys.path.insert(0, %r)\nimport turns_work as work\n" % DIRECTORY
TURN = BEGIN + "work.in_%s()\n"
UNTIL_STOPPED = BEGIN + "while not work.stopped():\n    work.in_sub()\nwork.write('sub')\n"


def main_until_stopped():
    common.ready()
    while not work.stopped():
        work.in_main()


def apart():
    create, run = subinterpreters.api()
    thread = threading.Thread(target=run, args=(create(), UNTIL_STOPPED))
    thread.start()
    main_until_stopped()
    thread.join()


def asleep():
    create, run = subinterpreters.api()
    thread = threading.Thread(target=run, args=(create(), BEGIN + "work.sub_sleeps()\n"))
    thread.start()
    common.ready()
    work.main_sleeps()
    thread.join()


def nested():
    create, run = subinterpreters.api()
    other = create()
    common.ready()
    while not work.stopped():
        work.in_main()
        run(other, TURN % "sub")
    run(other, BEGIN + "work.write('sub')\n")


def served():
    path = os.path.join(DIRECTORY, "interpreters_of_thread.so")
    codes = [(TURN % name + "if work.stopped():\n    work.write(%r)\n" % name).encode()
             for name in ("sub", "other")]
    stop = common.path("stop").encode()
    assert ctypes.PyDLL(path).begin(codes[0], codes[1], stop) == 0
    main_until_stopped()
    assert ctypes.CDLL(path).end() == 0


{"apart": apart, "asleep": asleep, "nested": nested, "served": served}[sys.argv[1]]()
work.write("main")
os._exit(0)  # interpreters that are still there need not end well
