# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""eats.py SECONDS   Computes for so long in before_the_end() when `go` is there, and then takes
memory in at_the_end() until the kernel ends it, at 20 % of a CPU at least."""
import os
import sys
import time

import common

CHUNK = 1 << 20


def compute(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass


def before_the_end(seconds):
    end = time.time() + seconds
    while time.time() < end:
        compute(0.05)
        time.sleep(0.05)


def at_the_end():
    held = []
    while True:
        compute(0.02)
        held.append(bytearray(os.urandom(1)) * CHUNK)


def main():
    common.ready()
    while not os.path.exists(common.path("go")):
        time.sleep(0.02)
    before_the_end(float(sys.argv[1]))
    at_the_end()


main()
