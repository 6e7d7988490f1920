# SPDX-License-Identifier: BSD-2-Clause
"""Executable files at the end of paths of 3.9 KiB and of 40 KiB, which no system call takes in one
piece."""
import os

import craft

PAGE = craft.PAGE
NAME = "p\x1b\n " + "x" * 240
DEPTHS = (1, 14, 15, 160)
EACH = 10


def attack(box):
    craft.needs_x86()
    os.chdir(box.directory)
    places = []
    for depth in range(max(DEPTHS) + 1):
        if depth in DEPTHS:
            for i in range(EACH):
                name = "%d-%d.so" % (depth, i) + "\u202e" * (i * 8)
                places.append(craft.map_file(craft.burner().write(name)))
        os.mkdir(NAME)
        os.chdir(NAME)
    box.ready()
    while True:
        for at in places:
            craft.call(at)
