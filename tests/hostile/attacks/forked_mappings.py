# SPDX-License-Identifier: BSD-2-Clause
"""Four hundred forks of a process with 4,000 executable mappings, each with one of its own: what
they share is known once, and what each user has is bounded (130 MiB without that)."""
import ctypes
import os
import time

import craft

PAGE = craft.PAGE
FORKS, MAPPINGS = 400, 4000
GROWTH = 80 << 20


def make_executable(at):
    craft.libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(PAGE), 5)


def attack(box):
    start = craft.anonymous(2 * (MAPPINGS + 1) * PAGE, protection=0)
    for k in range(MAPPINGS):
        if k % 200 == 199:
            time.sleep(0.05)
        make_executable(start + 2 * k * PAGE)
    time.sleep(1)
    for _ in range(FORKS):
        if not os.fork():
            make_executable(start + 2 * MAPPINGS * PAGE)
            while True:
                time.sleep(60)
        time.sleep(0.005)
    time.sleep(2)
    box.ready()
    os.wait()
