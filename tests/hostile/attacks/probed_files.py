# SPDX-License-Identifier: BSD-2-Clause
"""Hundreds of files that claim to be a CPython, each with a thousand sites, all mapped at once;
more come and go as fast as two processes can map them."""
import os
import time

import craft

EVENTS = True
STAYING, FILES, SITES = 120, 300, 1000
PAGE = craft.PAGE
CODE = b"\x90" * SITES + b"\xc3"


def make_at(path, number):
    first = PAGE + len(craft.BURN)
    notes = b"".join(
        craft.note((b"gc__start", b"gc__done")[i % 2], first + i) for i in range(SITES))
    return craft.fake_interpreter(path, unique=number, code=CODE, notes=notes)


def make(box, number):
    return make_at(os.path.join(box.directory, "libpython%d.so" % number), number)


def attack(box):
    craft.needs_x86()
    paths = [make(box, number) for number in range(FILES)]
    for path in paths[:STAYING]:
        if os.fork() == 0:
            craft.keep_calling(craft.map_fake(path) + PAGE, 1)
    time.sleep(2)
    if os.fork():
        box.ready()
    while True:
        for path in paths[STAYING:]:
            pid = os.fork()
            if pid == 0:
                base = craft.map_fake(path)
                craft.call(base + PAGE)
                os._exit(0)
            os.waitpid(pid, 0)
