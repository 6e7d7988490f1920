# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""For every target: ready and stop files, CPU clocks, JSON out.  2.7 and 3.6 to 3.15."""
import json
import os
import time

DIRECTORY = os.environ["E2E_DIR"]


def path(name):
    return os.path.join(DIRECTORY, name)


def ready():
    open(path("ready"), "w").close()


def stopped():
    return os.path.exists(path("stop"))


def write(name, value):
    with open(path(name + ".new"), "w") as file:
        json.dump(value, file)
    os.rename(path(name + ".new"), path(name))


def cpu_s():
    """User and system time of the process so far."""
    times = os.times()
    return times[0] + times[1]


def thread_cpu_s():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
