# SPDX-License-Identifier: BSD-2-Clause
"""Thirty processes with 4,000 executable mappings that lie apart, and 100 with a few for what is
left between theirs: more than the table of mappings holds."""
import ctypes
import os
import re
import time

import craft

PAGE = craft.PAGE
MAPPINGS = 30 * [4000] + 100 * [2]


def attack(box):
    craft.needs_x86()
    for i, mappings in enumerate(MAPPINGS):
        if not i % 10:
            time.sleep(0.5)
        if os.fork():
            continue
        at = craft.anonymous()
        craft.write_at(at, craft.BURN)
        # One reservation, of which each second page is executable.
        start = craft.anonymous(2 * mappings * PAGE, protection=0)
        for k in range(mappings):
            if k % 200 == 199:
                time.sleep(0.1)  # this is about the table; mapping_loop.py is about how fast
            craft.libc.mprotect(ctypes.c_void_p(start + 2 * k * PAGE), ctypes.c_size_t(PAGE), 5)
        craft.keep_calling(at, 0.2)
    time.sleep(4)
    box.ready()
    os.wait()


def check(rig):
    told = re.findall(r"user (\d+): the mappings of more processes", rig.run.err)
    assert told == ["65534"] and "map_sets_refused" in rig.run.err, rig.run.err
