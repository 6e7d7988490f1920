# SPDX-License-Identifier: BSD-2-Clause
"""on_a_grid.py DIRECTORY   Each 100 ms three functions compute for 1 ms each, 60 times; writes
their CPU time by its own clock to DIRECTORY/cpu.json."""
import json
import os
import sys
import time

ROUNDS, PERIOD_S, WORK_S = 60, 0.1, 0.001
cpu_s = {}


def work():
    end = time.monotonic() + WORK_S
    while time.monotonic() < end:
        pass


def grid_first():
    work()


def grid_second():
    work()


def grid_third():
    work()


start = time.monotonic()
for turn in range(ROUNDS):
    for place, function in enumerate((grid_first, grid_second, grid_third)):
        due = start + turn * PERIOD_S + place * 0.011
        time.sleep(max(0, due - time.monotonic()))
        before = time.thread_time()
        function()
        name = function.__name__
        cpu_s[name] = cpu_s.get(name, 0) + time.thread_time() - before
with open(os.path.join(sys.argv[1], "cpu.json"), "w") as file:
    json.dump({"pid": os.getpid(), "cpu_s": cpu_s}, file)
