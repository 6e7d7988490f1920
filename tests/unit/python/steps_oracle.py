# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Changes its threads step by step, one for each byte from the descriptor $STEPS, and says what a
look at their names should give.  (No signals: some versions lose them while a sub-interpreter
runs.)

    PID <pid>
    STEP <number> <KIND> <names, or -: threading is not imported>
    END

KIND: new; same: the threads are those of the step before; like: they may look the same.
"""
import os
import signal
import sys

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None

EXECUTED = """
import os, threading, time
started = threading.Event()
def run():
    started.set()
    time.sleep(120)
thread = threading.Thread(target=run, name="executed")
thread.daemon = True
thread.start()
started.wait()
os.write(1, ("STEP %d new MainThread,executed\\nEND\\n" % NUMBER).encode())
os.read(int(os.environ["STEPS"]), 1)
"""
# All in the thread that runs the rest: destroy() may wait for ever when another thread imported
# threading.
SUB = """
import os, threading
threading.current_thread().name = "sub"
names = NAMES + [thread.name for thread in threading.enumerate()]
os.write(1, ("STEP %d new %s\\n" % (NUMBER, ",".join(sorted(names)))).encode())
os.read(int(os.environ["STEPS"]), 1)
"""

LIMIT_S = 100  # sub-interpreters may wait for ever
modules = sys.modules
threading = modules.get("threading")
was_imported = bool(threading)  # by a .pth file
running = {}


def start(name):
    ready, stop = threading.Event(), threading.Event()

    def run():
        ready.set()
        stop.wait()

    thread = threading.Thread(target=run, name=name)
    thread.daemon = True
    thread.start()
    ready.wait()
    running[name] = (thread, stop)


def end(name):
    thread, stop = running.pop(name)
    stop.set()
    thread.join()


def grow_modules():
    for number in range(100):
        modules["steps_oracle_%d" % number] = sys


def import_threading():
    global threading
    import threading


def start_one():
    start("one")


def rename_one():
    running["one"][0].name = "renamed"
    running["renamed"] = running.pop("one")


def replace_one():
    end("renamed")
    start("another")


def rebind():
    threading._active = dict(threading._active)
    start("after the rebinding")


def start_many():
    for number in range(50):
        start("many %d" % number)


def end_many():
    for number in range(50):
        end("many %d" % number)


def forget_threading():
    del modules["threading"]


def remember_threading():
    modules["threading"] = threading


def run_sub():
    if not interpreters:
        return
    sub = interpreters.create()
    number = STEPS.index(run_sub)
    interpreters.run_string(sub, SUB.replace("NAMES", repr(names())).replace("NUMBER", str(number)))
    interpreters.destroy(sub)


def execute():
    os.execv(sys.executable,
             [sys.executable, "-c",
              EXECUTED.replace("NUMBER", str(len(STEPS) - 1))])


def end_sub():
    pass


STEPS = [
    lambda: None, grow_modules, import_threading, start_one, rename_one, replace_one, rebind,
    start_many, end_many, forget_threading, remember_threading, run_sub, end_sub, execute
]


def names():
    return [thread.name for thread in threading.enumerate()]


def say(number, step):
    same = step is rename_one or (step in (run_sub, end_sub) and not interpreters)
    like = step in (replace_one, remember_threading) or (
        was_imported and step in (grow_modules, import_threading))
    kind = "same" if same else "like" if like else "new"
    found = ",".join(sorted(names())) if "threading" in modules else "-"
    print("STEP %d %s %s" % (number, kind, found))
    sys.stdout.flush()


def main():
    signal.alarm(LIMIT_S)
    print("PID %d" % os.getpid())
    said = False
    for number, step in enumerate(STEPS):
        if number and not said and not os.read(int(os.environ["STEPS"]), 1):
            break
        step()
        said = step is run_sub and bool(interpreters)
        if not said:
            say(number, step)


main()
